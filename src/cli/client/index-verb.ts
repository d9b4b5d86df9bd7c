import { ConfigError } from '../../config/config-error.ts';
import { commandClock, pause } from '../../lib/clock.ts';
import { parseDuration } from '../../lib/duration.ts';
import type { DatabaseCalls } from '../database-calls.ts';
import { exitCodes, type Verb, type VerbContext } from '../verb.ts';
import { type ClientAction, clientFlags, jsonOf, printJson, runClient, tablePath, usageOf } from './client-verb.ts';

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
export const index: Verb = {
  name: 'index',
  summary: 'Create, drop, list and show the indexes of a table, and wait until one is ready.',
  usage: 'create|drop|get|wait TABLE INDEX | list TABLE [options]',
  flags: [
    { flag: '--body', value: 'JSON', help: 'create: the configuration.' },
    { flag: '--file', value: 'FILE', help: 'create: a file with the configuration.' },
    { flag: '--until', value: 'queryable|complete', help: 'wait: for what; `complete` unless given.' },
    { flag: '--timeout', value: 'DURATION', help: `wait: for how long at most; ${usualTimeout} unless given.` },
    { flag: '--json', help: 'list: one JSON object a line.' },
    ...clientFlags,
  ],
  async run(context) {
    const [word = '', table, name, ...more] = context.args.positionals;
    const isList = word === 'list' && name === undefined;
    const action = table === undefined ? undefined : isList ? list(table) : name && actionsOf(table, name)[word];
    if (!action || more.length > 0) throw usageOf(index);
    return await runClient(context, action);
  },
};

function actionsOf(table: string, name: string): Readonly<Record<string, ClientAction | undefined>> {
  const path = tablePath(table, 'indexes', name);
  return {
    create: async ({ call }, context) => {
      const config = jsonOf(context, '--body');
      if (config === undefined) throw new ConfigError('give the configuration in --body or --file');
      return printJson(context, await call('POST', path, config));
    },
    get: async ({ call }, context) => printJson(context, await call('GET', path)),
    drop: async ({ call }) => {
      await call('DELETE', path);
      return exitCodes.done;
    },
    wait: ({ call }, context) => wait(call, path, context),
  };
}

function list(table: string): ClientAction {
  return async ({ call }, context) => {
    const indexes = (await call('GET', tablePath(table, 'indexes'))) as unknown as readonly Details[];
    for (const each of indexes) {
      const { config, status } = each;
      const line = `${config.name}\t${config.type}\t${status.readiness.state}`;
      context.print(`${context.args.flags.has('--json') ? JSON.stringify(each) : line}\n`);
    }
    return exitCodes.done;
  };
}

async function wait(call: DatabaseCalls['call'], path: string, context: VerbContext): Promise<number> {
  const { flags } = context.args;
  const until = flags.get('--until') ?? 'complete';
  if (until !== 'queryable' && until !== 'complete') throw new ConfigError('--until must be queryable or complete');
  const endMs = commandClock.monotonicMs() + timeoutOf(flags.get('--timeout') ?? usualTimeout);
  let shown = '';
  for (;;) {
    const { status } = (await call('GET', path)) as unknown as Details;
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
