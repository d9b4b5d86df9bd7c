import { readFileSync } from 'node:fs';
import { ConfigError } from '../../config/config-error.ts';
import { verbOfActions } from '../actions.ts';
import { type DatabaseCalls, openCalls, RefusedError } from '../database-calls.ts';
import { configFlags } from '../load-config.ts';
import { exitCodes, type Verb, type VerbContext } from '../verb.ts';

/** Flags of every verb that asks a database. */
export const clientFlags = [
  { flag: '--url', value: 'URL', help: 'A running server, e.g. http://127.0.0.1:8080; else the data directory.' },
  { flag: '--key', value: 'KEY', help: 'Its credential; else the variable SUNDEW_KEY.' },
  ...configFlags(),
];

/** An action of a verb on a database, with the words that follow its name. Resolves with the exit code. */
export type ClientAction = (database: DatabaseCalls, context: VerbContext, ...given: string[]) => Promise<number>;

/** A verb whose actions ask a database. */
export function clientVerb(verb: Parameters<typeof verbOfActions<ClientAction>>[0]): Verb {
  return verbOfActions(verb, (run, context, given) =>
    runClient(context, (database) => run(database, context, ...given)),
  );
}

/** Opens the database, and says what it refuses. */
export async function runClient(context: VerbContext, action: ClientAction): Promise<number> {
  await using database = await openCalls(context);
  try {
    return await action(database, context);
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    context.explain(`${error.message}\n`);
    return error.isRetryable ? exitCodes.retry : exitCodes.failed;
  }
}

/** Prints a body as JSON that a person can read. */
export function printJson({ print }: VerbContext, body: unknown): number {
  print(`${JSON.stringify(body, null, 2)}\n`);
  return exitCodes.done;
}

/** `/db/v1/tables/TABLE`, and below it. */
export function tablePath(table: string, ...below: readonly string[]): string {
  return ['/db/v1/tables', ...[table, ...below].map(encodeURIComponent)].join('/');
}

/** An object as JSON, in a flag or in the file that `--file` names; undefined where neither is given. */
export function jsonOf({ args }: VerbContext, flag: string): Record<string, unknown> | undefined {
  const [text, file] = [args.flags.get(flag), args.flags.get('--file')];
  if (text !== undefined && file !== undefined) throw new ConfigError(`give ${flag} or --file, not both`);
  const json = text ?? (file === undefined ? undefined : textOf(file));
  return json === undefined ? undefined : objectOf(json, text === undefined ? (file ?? '') : flag);
}

export function objectOf(json: string, where: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Text that is no JSON is no object.
  }
  throw new ConfigError(`${where} must be a JSON object`);
}

export function listOf({ args }: VerbContext, flag: string): string[] | undefined {
  return args.flags.get(flag)?.split(',');
}

/** A whole number from `least` on; undefined where it is not given. */
export function countOf({ args }: VerbContext, flag: string, least = 0): number | undefined {
  const text = args.flags.get(flag);
  if (text === undefined) return undefined;
  const count = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(count) && count >= least) return count;
  throw new ConfigError(`${flag} must be a whole number from ${least} on`);
}

export function usageOf({ name, usage }: Verb): ConfigError {
  return new ConfigError(`usage: sundew ${name} ${usage}`);
}

/** The members whose values are given. */
export function given(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
