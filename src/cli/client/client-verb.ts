import { readFileSync } from 'node:fs';
import { ConfigError } from '../../config/config-error.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { verbOfActions } from '../actions.ts';
import { cellOf } from '../cell.ts';
import { type DatabaseCalls, type OpenHow, openCalls, RefusedError } from '../database-calls.ts';
import { configFlags } from '../load-config.ts';
import { serverFlags } from '../server-address.ts';
import { type ActionSpec, exitCodes, type Verb, type VerbContext } from '../verb.ts';
import { objectOf, type WrittenJson } from './written-json.ts';

/** Flags of every verb that asks a database. */
export const clientFlags = [
  ...serverFlags,
  ...configFlags(['dataDir', 'modelsDir', 'predictorsDir', 'allowDownloads', 'hubUrl', 'packageIndex']),
];

/** An action of a verb on a database, with the words that follow its name. Resolves with the exit code. */
export type ClientAction = (
  database: Pick<DatabaseCalls, 'call'>,
  context: VerbContext,
  ...given: string[]
) => Promise<number>;

export type ClientActionSpec = ActionSpec & { readonly run: ClientAction };

/** A verb whose actions ask a database; `beginning` is the action that may be the first thing that is done with one. */
export function clientVerb({
  beginning,
  ...verb
}: Parameters<typeof verbOfActions<ClientAction>>[0] & { readonly beginning?: string }): Verb {
  return verbOfActions(verb, (run, context, given) => {
    const mayMake = beginning !== undefined && context.args.positionals[0] === beginning;
    return runClient(context, (database) => run(database, context, ...given), { mayMake });
  });
}

/** Opens the database, as `openCalls` does, and says what it refuses. */
export async function runClient(
  context: VerbContext,
  action: (database: DatabaseCalls, context: VerbContext) => Promise<number>,
  how?: OpenHow,
): Promise<number> {
  await using database = await openCalls(context, how);
  return await sayingRefusals(context, () => action(database, context));
}

/** Resolves with the exit code, also where a database or a service refused something, which is said. */
export async function sayingRefusals({ explain }: VerbContext, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ServiceError) && !(error instanceof RefusedError)) throw error;
    const isRefusal = error instanceof RefusedError;
    explain(isRefusal ? `${error.message}\n` : `${error.code}: ${error.message}\n`);
    return (isRefusal ? error.isRetryable : error.retryable) ? exitCodes.retry : exitCodes.failed;
  }
}

/** Prints a body as JSON that a person can read. */
export function printJson({ print }: VerbContext, body: unknown): number {
  print(`${JSON.stringify(body, null, 2)}\n`);
  return exitCodes.done;
}

/** Prints each on a line of its own: with `--json` as JSON, else its columns with tabs between them. */
export function printEach<Item>(
  { args, print }: VerbContext,
  items: readonly Item[],
  columnsOf: (item: Item) => readonly unknown[],
): number {
  const isJson = args.flags.has('--json');
  for (const item of items) print(`${isJson ? JSON.stringify(item) : columnsOf(item).map(cellOf).join('\t')}\n`);
  return exitCodes.done;
}

/** `/db/v1/tables/TABLE`, and below it. */
export function tablePath(table: string, ...below: readonly string[]): string {
  return pathBelow('/db/v1/tables', table, ...below);
}

/** The path of these names below `base`. Throws `ConfigError` for a name that would make it the path of something else. */
export function pathBelow(base: string, ...names: readonly string[]): string {
  const other = names.find((name) => ['', '.', '..'].includes(name));
  if (other !== undefined) throw new ConfigError(`"${other}" is no name that an address can have`);
  return [base, ...names.map(encodeURIComponent)].join('/');
}

/** An object as JSON, in a flag or in the file that `--file` names; undefined where neither is given. */
export function jsonOf({ args }: VerbContext, flag: string): WrittenJson | undefined {
  const [text, file] = [args.flags.get(flag), args.flags.get('--file')];
  if (text !== undefined && file !== undefined) throw new ConfigError(`give ${flag} or --file, not both`);
  const json = text ?? (file === undefined ? undefined : textOf(file));
  return json === undefined ? undefined : objectOf(json, text === undefined ? (file ?? '') : flag);
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

/** Throws `ConfigError` for a file that cannot be read, or is not in UTF-8. */
export function textOf(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  } catch (error) {
    throw new ConfigError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
