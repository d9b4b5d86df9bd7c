import { ConfigError } from '../../config/config-error.ts';
import { exitCodes, type Verb, type VerbContext } from '../verb.ts';
import { clientFlags, jsonOf, printJson, runClient, tablePath, usageOf } from './client-verb.ts';
import { bodyText, WrittenJson } from './written-json.ts';

const syncFlag = { flag: '--sync-level', value: 'LEVEL', help: 'What to wait for, such as write or full_index.' };

/** `sundew lookup`: prints a document. */
export const lookup: Verb = {
  name: 'lookup',
  summary: 'Print a document of a table, as it was written.',
  usage: 'TABLE KEY [options]',
  flags: [{ flag: '--fields', value: 'LIST', help: 'Members to show, with commas between them.' }, ...clientFlags],
  async run(context) {
    const [table, key, ...more] = context.args.positionals;
    if (table === undefined || key === undefined || more.length > 0) throw usageOf(lookup);
    const fields = context.args.flags.get('--fields');
    const query = fields === undefined ? '' : `?${new URLSearchParams({ fields })}`;
    return await runClient(context, async ({ text }) => {
      context.print(`${await text('GET', `${tablePath(table, 'documents', key)}${query}`)}\n`);
      return exitCodes.done;
    });
  },
};

/** `sundew insert`: writes one document. */
export const insert: Verb = {
  name: 'insert',
  summary: 'Write a document into a table, in place of one of its key.',
  usage: 'TABLE KEY [options]',
  flags: [
    { flag: '--value', value: 'JSON', help: 'The document.' },
    { flag: '--file', value: 'FILE', help: 'A file with the document.' },
    syncFlag,
    ...clientFlags,
  ],
  async run(context) {
    const [table, key, ...more] = context.args.positionals;
    if (table === undefined || key === undefined || more.length > 0) throw usageOf(insert);
    const document = jsonOf(context, '--value');
    if (document === undefined) throw new ConfigError('give the document in --value or --file');
    return await write(context, table, { inserts: new WrittenJson(bodyText({ [key]: document })) });
  },
};

/** `sundew delete`: deletes documents. */
export const deleteVerb: Verb = {
  name: 'delete',
  summary: 'Delete documents of a table.',
  usage: 'TABLE KEY [KEY ...] [options]',
  flags: [syncFlag, ...clientFlags],
  async run(context) {
    const [table, ...keys] = context.args.positionals;
    if (table === undefined || keys.length === 0) throw usageOf(deleteVerb);
    return await write(context, table, { deletes: keys });
  },
};

async function write(context: VerbContext, table: string, batch: Record<string, unknown>): Promise<number> {
  const body = bodyText({ ...batch, sync_level: context.args.flags.get('--sync-level') });
  return await runClient(context, async ({ call }) => {
    const written = await call('POST', tablePath(table, 'batch'), body);
    printJson(context, written);
    return written.status === 'committed' ? exitCodes.done : exitCodes.retry;
  });
}
