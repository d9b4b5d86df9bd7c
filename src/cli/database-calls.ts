import { ConfigError } from '../config/config-error.ts';
import { RunningConfig } from '../config/reload.ts';
import type { App } from '../http/listener/app.ts';
import { commandClock } from '../lib/clock.ts';
import { createLogger } from '../observability/line-logger.ts';
import { openServices } from '../server/open-services.ts';
import { DataDirectory } from '../storage/directory/data-directory.ts';
import { DataDirectoryError } from '../storage/directory/data-directory-error.ts';
import { checkDataFormat } from '../storage/directory/data-format.ts';
import { configFlags, configOf } from './load-config.ts';
import { serverAddress, serverFlags } from './server-address.ts';
import type { VerbContext } from './verb.ts';

/** An answer that is no success, or none. */
export class RefusedError extends Error {
  readonly isRetryable: boolean;

  constructor(message: string, isRetryable: boolean) {
    super(message);
    this.isRetryable = isRetryable;
  }
}

/** The database of a command: a server at its address, or a data directory that no server holds. */
export interface DatabaseCalls extends AsyncDisposable {
  /** The body of the answer; a text is sent as it is, anything else as JSON. Throws `RefusedError`. */
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  /** The same as it was sent. */
  text(method: string, path: string): Promise<string>;
}

const nowhere = 'http://sundew.invalid';
/** Codes of the system for a server that cannot be reached, or has gone. */
const unreachable = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);
/** Codes of TLS whose own words say nothing of what to do. */
const handshakes: Readonly<Record<string, string>> = {
  EPROTO: 'the TLS handshake failed; where the server asks for a certificate, give "--tls-cert" and "--tls-key"',
  ...Object.fromEntries(
    [
      'SELF_SIGNED_CERT_IN_CHAIN',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    ].map((code) => [code, 'the certificate of the server is from an unknown authority; name its own by "--tls-ca"']),
  ),
};
/** Statuses of a proxy whose server does not answer at the moment. */
const unavailable = new Set([502, 503, 504]);

export interface OpenHow {
  /** A data directory is made where there is none; without it, a mistaken path would look like an empty database. */
  readonly mayMake?: boolean;
}

/** With `--url` the server there, with `--key` as the credential; else the data directory, which is opened for the command. */
export async function openCalls(context: VerbContext, { mayMake = false }: OpenHow = {}): Promise<DatabaseCalls> {
  const { flags } = context.args;
  const server = serverAddress(context);
  if (server !== undefined) {
    const { url, headers, tls } = server;
    const other = configFlags().find(({ flag }) => flags.has(flag) && !serverFlags.some((each) => each.flag === flag));
    if (other !== undefined) throw new ConfigError(`a server at "--url" has its own ${other.flag}; leave it out`);
    // A backup may take hours, in which nothing is sent.
    const send = (request: Request) => fetch(request, { timeout: false, tls });
    return { ...calls(send, url, headers), [Symbol.asyncDispose]: async () => undefined };
  }
  // A user who can open the directory may do everything with it.
  const offline = { ...context, args: { ...context.args, flags: new Map([...flags, ['--auth', 'false']]) } };
  const load = () => configOf(offline);
  const config = new RunningConfig(load(), load);
  if (!mayMake) requireDataDirectory(config.config.dataDir);
  const logger = createLogger({ level: 'warn', format: 'text', clock: commandClock, write: context.explain });
  const services = await openServices({ config, logger, clock: commandClock, socket: undefined });
  return { ...callsWithin(services.app), [Symbol.asyncDispose]: () => services.close() };
}

function requireDataDirectory(root: string): void {
  if (checkDataFormat(new DataDirectory(root))) return;
  const hint = 'look at --data-dir; a running server is named by --url';
  throw new DataDirectoryError('missing', `${root} is not a data directory`, hint);
}

/** Calls of an application of this process. */
export function callsWithin(app: Pick<App, 'handle'>): Pick<DatabaseCalls, 'call' | 'text'> {
  return calls(app.handle, nowhere, {});
}

function calls(
  send: (request: Request) => Promise<Response>,
  base: string,
  headers: Record<string, string>,
): Pick<DatabaseCalls, 'call' | 'text'> {
  const ask = async (method: string, path: string, body?: unknown) => {
    const content = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    const request = new Request(`${base}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...content,
    });
    const { status, text } = await send(request)
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch(withoutAnswer);
    if (status === 204) return { answer: {}, text };
    const answer = objectOf(text);
    if (!answer) {
      const message = `what answers with status ${status} is no Sundew server; look at "--url" and what is before the server`;
      throw new RefusedError(message, unavailable.has(status));
    }
    if (status < 400) return { answer, text };
    throw new RefusedError(`${answer.code}: ${answer.error}`, answer.retryable === true);
  };
  return {
    call: async (method, path, body) => (await ask(method, path, body)).answer,
    text: async (method, path) => (await ask(method, path)).text,
  };
}

function withoutAnswer(error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const handshake = handshakes[code];
  if (handshake !== undefined) throw new RefusedError(handshake, false);
  if (!unreachable.has(code)) throw error;
  throw new RefusedError(`unavailable: the server gives no answer (${code}); what was asked may have been done`, true);
}

/** The object that a body is; undefined where it is none. */
function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
