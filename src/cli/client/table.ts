import { exitCodes, type VerbContext } from '../verb.ts';
import { clientFlags, clientVerb, countOf, jsonOf, printEach, printJson, tablePath } from './client-verb.ts';
import { bodyText } from './written-json.ts';

/** `sundew table`: creates, drops, lists and shows tables. */
export const table = clientVerb({
  name: 'table',
  beginning: 'create',
  summary: 'Create, drop, list and show tables, through a server or in a data directory that no server uses.',
  actions: [
    {
      name: 'create',
      takes: ['TABLE'],
      help: 'Make a table and print its record.',
      run: async ({ call }, context, name) => printJson(context, await call('POST', tablePath(name), bodyOf(context))),
    },
    {
      name: 'drop',
      takes: ['TABLE'],
      help: 'Drop a table with its documents and indexes.',
      run: async ({ call }, _context, name) => {
        await call('DELETE', tablePath(name));
        return exitCodes.done;
      },
    },
    {
      name: 'get',
      takes: ['TABLE'],
      help: 'Print the record of a table.',
      run: async ({ call }, context, name) => printJson(context, await call('GET', tablePath(name))),
    },
    {
      name: 'list',
      takes: [],
      help: 'Print the names of the tables.',
      async run({ call }, context) {
        const prefix = context.args.flags.get('--prefix');
        const query = prefix === undefined ? '' : `?${new URLSearchParams({ prefix })}`;
        const tables = (await call('GET', `/db/v1/tables${query}`)) as unknown as readonly { name: string }[];
        return printEach(context, tables, ({ name }) => [name]);
      },
    },
  ],
  flags: [
    { flag: '--shards', value: 'INTEGER', of: ['create'], help: 'Key ranges of the table.' },
    { flag: '--body', value: 'JSON', of: ['create'], help: 'Schema, indexes and whatever else the table is to have.' },
    { flag: '--file', value: 'FILE', of: ['create'], help: 'A file with them.' },
    { flag: '--prefix', value: 'TEXT', of: ['list'], help: 'Only tables whose names begin so.' },
    { flag: '--json', of: ['list'], help: 'One JSON object a line.' },
    ...clientFlags,
  ],
});

function bodyOf(context: VerbContext): string {
  return bodyText({ num_shards: countOf(context, '--shards', 1) }, jsonOf(context, '--body'));
}
