import { ConfigError } from '../config/config-error.ts';
import { RunningConfig } from '../config/reload.ts';
import { commandClock } from '../lib/clock.ts';
import { createLogger } from '../observability/line-logger.ts';
import { openServices } from '../server/open-services.ts';
import { configOf } from './load-config.ts';
import type { VerbContext } from './verb.ts';

/** An answer that is no success. */
export class RefusedError extends Error {
  readonly isRetryable: boolean;

  constructor(message: string, isRetryable: boolean) {
    super(message);
    this.isRetryable = isRetryable;
  }
}

/** The database of a command: a server at its address, or a data directory that no server holds. */
export interface DatabaseCalls extends AsyncDisposable {
  /** The body of the answer. Throws `RefusedError`. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
}

const nowhere = 'http://sundew.invalid';

/** With `--url` the server there, with `--key` as the credential; else the data directory, which is opened for the command. */
export async function openCalls(context: VerbContext): Promise<DatabaseCalls> {
  const { flags } = context.args;
  const url = flags.get('--url');
  const key = flags.get('--key') ?? context.environment.SUNDEW_KEY;
  if (url !== undefined) {
    if (URL.parse(url) === null) throw new ConfigError('"--url" is no address');
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const send = (request: Request) => fetch(request);
    return { call: caller(send, url.replace(/\/+$/, ''), headers), [Symbol.asyncDispose]: async () => undefined };
  }
  // A user who can open the directory may do everything with it.
  const offline = { ...context, args: { ...context.args, flags: new Map([...flags, ['--auth', 'false']]) } };
  const load = () => configOf(offline);
  const config = new RunningConfig(load(), load);
  const logger = createLogger({ level: 'warn', format: 'text', clock: commandClock, write: context.explain });
  const services = await openServices({ config, logger, clock: commandClock, socket: undefined });
  return { call: caller(services.app.handle, nowhere, {}), [Symbol.asyncDispose]: () => services.close() };
}

function caller(
  send: (request: Request) => Promise<Response>,
  base: string,
  headers: Record<string, string>,
): DatabaseCalls['call'] {
  return async (method, path, body) => {
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await send(
      new Request(`${base}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...content,
      }),
    );
    const answer = (await response.json()) as Record<string, unknown>;
    if (response.ok) return answer;
    throw new RefusedError(`${answer.code}: ${answer.error}`, answer.retryable === true);
  };
}
