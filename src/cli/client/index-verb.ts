import { ConfigError } from '../../config/config-error.ts';
import { commandClock, pause } from '../../lib/clock.ts';
import { parseDuration } from '../../lib/duration.ts';
import type { DatabaseCalls } from '../database-calls.ts';
import { exitCodes, type VerbContext } from '../verb.ts';
import { clientFlags, clientVerb, jsonOf, printEach, printJson, tablePath } from './client-verb.ts';

interface Details {
  readonly config: { readonly name: string; readonly type: string };
  readonly status: {
    readonly readiness: { readonly state: string; readonly queryable: boolean; readonly complete: boolean };
    readonly backfill_progress: number;
    readonly error: string;
  };
}

const pollMs = 200;
const usualTimeout = '10m';

/** `sundew index`: creates, drops, lists and shows the indexes of a table, and waits until one is ready. */
export const index = clientVerb({
  name: 'index',
  summary: 'Create, drop, list and show the indexes of a table, and wait until one is ready.',
  actions: [
    {
      name: 'create',
      takes: ['TABLE', 'INDEX'],
      help: 'Make an index and print its configuration.',
      async run({ call }, context, table, name) {
        const config = jsonOf(context, '--body');
        if (config === undefined) throw new ConfigError('give the configuration in --body or --file');
        return printJson(context, await call('POST', indexPath(table, name), config.text));
      },
    },
    {
      name: 'drop',
      takes: ['TABLE', 'INDEX'],
      help: 'Drop an index.',
      run: async ({ call }, _context, table, name) => {
        await call('DELETE', indexPath(table, name));
        return exitCodes.done;
      },
    },
    {
      name: 'get',
      takes: ['TABLE', 'INDEX'],
      help: 'Print the configuration and the state of an index.',
      run: async ({ call }, context, table, name) => printJson(context, await call('GET', indexPath(table, name))),
    },
    { name: 'list', takes: ['TABLE'], help: 'Print the indexes of a table with their states.', run: list },
    { name: 'wait', takes: ['TABLE', 'INDEX'], help: 'Wait until an index is ready.', run: wait },
  ],
  flags: [
    { flag: '--body', value: 'JSON', of: ['create'], help: 'The configuration.' },
    { flag: '--file', value: 'FILE', of: ['create'], help: 'A file with the configuration.' },
    { flag: '--until', value: 'queryable|complete', of: ['wait'], help: 'For what; `complete` unless given.' },
    { flag: '--timeout', value: 'DURATION', of: ['wait'], help: `For how long at most; ${usualTimeout} unless given.` },
    { flag: '--json', of: ['list'], help: 'One JSON object a line.' },
    ...clientFlags,
  ],
});

function indexPath(table: string, name: string): string {
  return tablePath(table, 'indexes', name);
}

async function list({ call }: DatabaseCalls, context: VerbContext, table: string): Promise<number> {
  const indexes = (await call('GET', tablePath(table, 'indexes'))) as unknown as readonly Details[];
  return printEach(context, indexes, ({ config, status }) => [config.name, config.type, status.readiness.state]);
}

async function wait({ call }: DatabaseCalls, context: VerbContext, table: string, name: string): Promise<number> {
  const { flags } = context.args;
  const until = flags.get('--until') ?? 'complete';
  if (until !== 'queryable' && until !== 'complete') throw new ConfigError('--until must be queryable or complete');
  const endMs = commandClock.monotonicMs() + timeoutOf(flags.get('--timeout') ?? usualTimeout);
  let shown = '';
  for (;;) {
    const { status } = (await call('GET', indexPath(table, name))) as unknown as Details;
    const { readiness, backfill_progress: progress, error } = status;
    if (readiness[until]) {
      context.print(`${readiness.state}\n`);
      return exitCodes.done;
    }
    const state = `${readiness.state}, ${Math.floor(100 * progress)} %${error === '' ? '' : `: ${error}`}`;
    if (state !== shown) context.explain(`${state}\n`);
    shown = state;
    if (readiness.state === 'failed') return exitCodes.failed;
    if (commandClock.monotonicMs() >= endMs) return exitCodes.retry;
    await pause(commandClock, pollMs);
  }
}

function timeoutOf(text: string): number {
  try {
    return parseDuration(text);
  } catch (error) {
    throw new ConfigError(`--timeout: ${error instanceof Error ? error.message : String(error)}`);
  }
}
