import type { Verb, VerbContext } from '../verb.ts';
import { clientFlags, jsonOf, listOf, printJson, runClient, tablePath, usageOf } from './client-verb.ts';
import { bodyText, objectOf } from './written-json.ts';

/** `sundew query`: prints what a query finds. */
export const query: Verb = {
  name: 'query',
  summary: 'Search a table.',
  usage: 'TABLE [options]',
  flags: [
    { flag: '--full-text-search', value: 'QUERY', help: 'Words, such as `title:soup AND year:>2020`.' },
    { flag: '--semantic-search', value: 'TEXT', help: 'A text whose meaning is searched for.' },
    { flag: '--indexes', value: 'LIST', help: 'Embeddings indexes to search, with commas between them.' },
    { flag: '--filter-query', value: 'JSON', help: 'A condition that hits have to meet.' },
    { flag: '--fields', value: 'LIST', help: 'Members to show, with commas between them.' },
    { flag: '--limit', value: 'INTEGER', help: 'Hits at most; 10 unless given.' },
    { flag: '--offset', value: 'INTEGER', help: 'Hits to pass over.' },
    { flag: '--body', value: 'JSON', help: 'Other members of the request.' },
    { flag: '--file', value: 'FILE', help: 'A file with them.' },
    ...clientFlags,
  ],
  async run(context) {
    const [table, ...more] = context.args.positionals;
    if (table === undefined || more.length > 0) throw usageOf(query);
    const body = bodyText(searchOf(context), jsonOf(context, '--body'));
    return await runClient(context, async ({ call }) => {
      const { responses } = await call('POST', tablePath(table, 'query'), body);
      return printJson(context, (responses as readonly unknown[])[0]);
    });
  },
};

function searchOf(context: VerbContext): Record<string, unknown> {
  const { flags } = context.args;
  const words = flags.get('--full-text-search');
  const filter = flags.get('--filter-query');
  return {
    full_text_search: words === undefined ? undefined : { query: words },
    semantic_search: flags.get('--semantic-search'),
    filter_query: filter === undefined ? undefined : objectOf(filter, '--filter-query'),
    indexes: listOf(context, '--indexes'),
    fields: listOf(context, '--fields'),
    limit: numberOf(flags.get('--limit')),
    offset: numberOf(flags.get('--offset')),
  };
}

/** The server says what it takes. */
function numberOf(text: string | undefined): number | string | undefined {
  return text === undefined || !/^\d+$/.test(text) ? text : Number(text);
}
