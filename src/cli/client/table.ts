import { exitCodes, type Verb, type VerbContext } from '../verb.ts';
import {
  type ClientAction,
  clientFlags,
  countOf,
  given,
  jsonOf,
  printJson,
  runClient,
  tablePath,
  usageOf,
} from './client-verb.ts';

/** `sundew table`: creates, drops, lists and shows tables. */
export const table: Verb = {
  name: 'table',
  summary: 'Create, drop, list and show tables, through a server or in a data directory that no server uses.',
  usage: 'create TABLE | drop TABLE | get TABLE | list [options]',
  flags: [
    { flag: '--shards', value: 'INTEGER', help: 'create: key ranges of the table.' },
    { flag: '--body', value: 'JSON', help: 'create: schema, indexes and whatever else the table is to have.' },
    { flag: '--file', value: 'FILE', help: 'create: a file with them.' },
    { flag: '--prefix', value: 'TEXT', help: 'list: only tables whose names begin so.' },
    { flag: '--json', help: 'list: one JSON object a line.' },
    ...clientFlags,
  ],
  async run(context) {
    const [word = '', name, ...more] = context.args.positionals;
    const action = word === 'list' ? list : name === undefined ? undefined : actionsOf(name)[word];
    if (!action || more.length > 0 || (word === 'list' && name !== undefined)) {
      throw usageOf(table);
    }
    return await runClient(context, action);
  },
};

function actionsOf(name: string): Readonly<Record<string, ClientAction | undefined>> {
  return {
    create: async ({ call }, context) => printJson(context, await call('POST', tablePath(name), bodyOf(context))),
    get: async ({ call }, context) => printJson(context, await call('GET', tablePath(name))),
    drop: async ({ call }) => {
      await call('DELETE', tablePath(name));
      return exitCodes.done;
    },
  };
}

function bodyOf(context: VerbContext): Record<string, unknown> {
  return { ...jsonOf(context, '--body'), ...given({ num_shards: countOf(context, '--shards', 1) }) };
}

async function list({ call }: Parameters<ClientAction>[0], context: VerbContext): Promise<number> {
  const prefix = context.args.flags.get('--prefix');
  const query = prefix === undefined ? '' : `?${new URLSearchParams({ prefix })}`;
  const tables = (await call('GET', `/db/v1/tables${query}`)) as unknown as readonly { name: string }[];
  for (const each of tables) {
    context.print(context.args.flags.has('--json') ? `${JSON.stringify(each)}\n` : `${each.name}\n`);
  }
  return exitCodes.done;
}
