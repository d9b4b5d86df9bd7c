import { shownCredential } from '../lib/text/credential-references.ts';
import { didYouMean } from '../lib/text/did-you-mean.ts';
import { ConfigError } from './config-error.ts';
import { readConfigFile, readText } from './config-file.ts';
import { boundsWithin, brokenRelation, type LimitOptions, limits } from './limits.ts';
import { entriesOf, tableOfSections } from './named-sections/named-sections.ts';
import { sections } from './named-sections/sections.ts';
import { type Option, type OptionTable, variableOf } from './option.ts';
import { type Config, type OptionName, options } from './options.ts';

export type Origin = 'default' | 'file' | 'environment' | 'flag';

export interface ConfigSources {
  /** Flags with their dashes -> text. */
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Path of the configuration file, when there is one. */
  readonly file: string | undefined;
  readonly readFile: (path: string) => string;
  /** Nothing but options is in the file: keys that mean nothing here are refused in every section. */
  readonly isOwn?: boolean;
  /** Makes a path absolute; unless given, it is of the working directory at the time of its use. */
  readonly absolute?: (path: string) => string;
}

interface LoadedOptions<Values> {
  readonly config: Values;
  readonly origins: Readonly<Record<string, Origin>>;
  /** SHA-256 (hexadecimal) of every effective value; a secret counts only as set or not. */
  readonly hash: string;
}

export interface LoadedConfig extends LoadedOptions<Config> {
  /** The options of the server and those of every named entry, by name. */
  readonly table: OptionTable;
  /** Their values, by the same names. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Variables of the environment that credentials may refer to. */
  readonly variables: ReadonlyMap<string, string>;
  /** Clauses about keys of the file that nothing is known of. */
  readonly warnings: readonly string[];
}

const variablePrefix = 'SUNDEW__';
/** Variables of ours that are not options: they name the configuration file and the failpoint of crash tests. */
export const fileVariable = 'SUNDEW__CONFIG';
const failpointVariable = 'SUNDEW_FAILPOINT';

/** The server's options and named entries from default < file < environment < flag. Throws `ConfigError`. */
export function loadConfig(given: ConfigSources): LoadedConfig {
  const failpoint = given.environment[failpointVariable];
  const environment =
    failpoint === undefined
      ? given.environment
      : { [variableOf('testing.failpoint')]: failpoint, ...given.environment };
  const sources = { ...given, environment };
  const fromFile = readFileOf(sources);
  const table: OptionTable = {
    ...options,
    ...tableOfSections(sections, [...fromFile.keys()], Object.keys(environment)),
  };
  const { known, warnings } = sources.isOwn
    ? { known: fromFile, warnings: [] }
    : withoutUnknownSections(table, sources.file, fromFile);
  const { config: values, origins, hash } = loadTable(table, sources, known);
  const config = configOfValues(values);
  return { config, origins, hash, table, values, variables: variablesOf(config, environment), warnings };
}

/** The options by their names, the entries of each section by theirs. Throws `ConfigError` where an entry is at odds. */
export function configOfValues(values: Readonly<Record<string, unknown>>): Config {
  const own = Object.fromEntries(Object.keys(options).map((name) => [name, values[name]]));
  return { ...own, ...entriesOf(sections, values) } as unknown as Config;
}

function variablesOf({ credentialVariables }: Config, environment: ConfigSources['environment']): Map<string, string> {
  const set = credentialVariables.map(({ name }) => [name, environment[name] ?? ''] as const);
  return new Map(set.filter(([, value]) => value !== ''));
}

function readFileOf({ file, readFile }: ConfigSources): Map<string, unknown> {
  return file === undefined ? new Map() : readConfigFile(file, readFile);
}

function loadTable(
  table: OptionTable,
  sources: ConfigSources,
  fromFile: ReadonlyMap<string, unknown>,
): LoadedOptions<Readonly<Record<string, unknown>>> {
  refuseUnknown(table, sources, fromFile);
  const config: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const [name, option] of Object.entries(table)) {
    const given = lookUp(option, sources, fromFile);
    origins[name] = given.origin;
    const value = given.origin === 'default' ? option.default : read(option, given.raw, given.where);
    config[name] = isPath(option, value) ? (sources.absolute?.(value) ?? value) : value;
  }
  return { config, origins, hash: hashOptions(table, config) };
}

/** The word `none` stands for no file. */
function isPath({ kind }: Option<unknown>, value: unknown): value is string {
  return kind.name === 'path' && typeof value === 'string' && value !== 'none';
}

interface Given {
  readonly origin: Origin;
  readonly raw?: unknown;
  readonly where: string;
}

function lookUp(option: Option<unknown>, sources: ConfigSources, fromFile: ReadonlyMap<string, unknown>): Given {
  const flag = option.flag === undefined ? undefined : sources.flags.get(option.flag);
  if (flag !== undefined) return { origin: 'flag', raw: flag, where: option.flag ?? '' };
  const variable = variableOf(option.key);
  const text = sources.environment[variable];
  const secretFile = option.secret ? sources.environment[`${variable}_FILE`] : undefined;
  if (text !== undefined && secretFile !== undefined) {
    throw new ConfigError(`${variable} and ${variable}_FILE are both set; leave out one of them`);
  }
  if (text !== undefined) return { origin: 'environment', raw: text, where: variable };
  if (secretFile !== undefined) {
    return { origin: 'environment', raw: readText(secretFile, sources.readFile).trim(), where: `${variable}_FILE` };
  }
  const [key, ...others] = [option.key, ...(option.aliases ?? [])].filter((each) => fromFile.has(each));
  if (key === undefined) return { origin: 'default', where: '' };
  const other = others.find((each) => !Bun.deepEquals(fromFile.get(each), fromFile.get(key)));
  if (other !== undefined) {
    throw new ConfigError(`"${key}" and "${other}" in ${sources.file} mean the same and differ; leave out one of them`);
  }
  return { origin: 'file', raw: fromFile.get(key), where: `"${key}" in ${sources.file}` };
}

function read(option: Option<unknown>, raw: unknown, where: string): unknown {
  try {
    return option.kind.read(raw);
  } catch (error) {
    const expectation = error instanceof Error ? error.message : String(error);
    const shown = option.secret || hasPassword(raw) ? '' : `, not ${JSON.stringify(raw)}`;
    throw new ConfigError(`${where} must be ${expectation}${shown}`);
  }
}

/** Whether it is an address that a password stands in, for an option that takes none: messages go to the log. */
function hasPassword(raw: unknown): boolean {
  return typeof raw === 'string' && /\/\/[^/]*@/.test(raw);
}

function keysOf(table: OptionTable): string[] {
  return Object.values(table).flatMap((option) => [option.key, ...(option.aliases ?? [])]);
}

/** A file may be shared with other programs: top keys that mean nothing here are passed over, and told of. */
function withoutUnknownSections(table: OptionTable, file: string | undefined, fromFile: ReadonlyMap<string, unknown>) {
  const topOf = (key: string) => key.split('.', 1)[0] ?? '';
  const tops = new Set([...keysOf(table), ...Object.values(sections).map(({ key }) => key)].map(topOf));
  const [known, unknown] = [new Map<string, unknown>(), new Set<string>()];
  for (const [key, value] of fromFile) {
    if (tops.has(topOf(key))) known.set(key, value);
    else unknown.add(topOf(key));
  }
  const warnings = [...unknown].map((top) =>
    withGuess(`${file} has an unknown key "${top}", which is left out`, top, tops),
  );
  return { known, warnings };
}

function refuseUnknown(table: OptionTable, sources: ConfigSources, fromFile: ReadonlyMap<string, unknown>): void {
  const all = Object.values(table);
  const keys = keysOf(table);
  const within = [...keys, ...Object.values(sections).map(({ key }) => `${key}.`)];
  for (const [key, value] of fromFile) {
    // An empty section says nothing; an empty entry of a named one is there, and is looked at as a whole.
    const isSection = within.some((each) => each.startsWith(`${key}.`));
    if (isSection && value === null) {
      // Not taken for an empty one: members that lack their indent may be those that ask for credentials.
      throw new ConfigError(
        `"${key}" in ${sources.file} has no members; indent those that it should have, or leave it out`,
      );
    }
    if (isSection && isEmpty(value)) continue;
    if (isSection) throw new ConfigError(`"${key}" in ${sources.file} must have members, each on a line or in braces`);
    refuse(key, keys, `${sources.file} has an unknown key "${key}"`);
  }
  const flags = all.flatMap((option) => (option.flag === undefined ? [] : [option.flag]));
  for (const flag of sources.flags.keys()) refuse(flag, flags, `unknown option ${flag}`);
  const variables = all.flatMap(({ key, secret }) =>
    secret ? [variableOf(key), `${variableOf(key)}_FILE`] : [variableOf(key)],
  );
  for (const name of Object.keys(sources.environment)) {
    if (name.startsWith(variablePrefix) && name !== fileVariable) refuse(name, variables, `unknown variable ${name}`);
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function refuse(word: string, known: readonly string[], message: string): void {
  if (!known.includes(word)) throw new ConfigError(withGuess(message, word, known));
}

function withGuess(message: string, word: string, known: Iterable<string>): string {
  const guess = didYouMean(word, known);
  return guess === undefined ? message : `${message}; did you mean ${guess}?`;
}

/** A value in writing, as far as it may be seen: of a secret only its references to others. */
export function shownValue(option: Option<unknown>, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const text = option.kind.write(value);
  return option.secret ? shownCredential(text) : text;
}

/** SHA-256 of every value in writing; a secret counts only as set or not. */
export function hashOptions(table: OptionTable, values: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(table).map(
    ([name, option]) => `${option.key}=${shownValue(option, values[name]) ?? '(unset)'}`,
  );
  return new Bun.CryptoHasher('sha256').update(lines.sort().join('\n')).digest('hex');
}

/**
 * The bounds as this configuration moves them, and the memory that the process may use (bytes; the limit of its
 * container where it has one). Throws `ConfigError` when they conflict.
 */
export function limitsOf(config: Config, memoryBytes = process.constrainedMemory()): LimitOptions {
  const moved: Partial<Record<keyof LimitOptions, number>> = {};
  for (const name of Object.keys(options) as OptionName[]) {
    const value = config[name];
    if (Object.hasOwn(limits, name) && typeof value === 'number') moved[name as keyof LimitOptions] = value;
  }
  const bounds = { ...limits, ...boundsWithin(memoryBytes), ...moved };
  const broken = brokenRelation(bounds);
  if (broken !== undefined) throw new ConfigError(`the limits conflict: ${broken} must hold`);
  return bounds;
}
