import { didYouMean } from '../lib/did-you-mean.ts';
import { brokenRelation, type LimitOptions, limits } from './limits.ts';
import { type Config, type Option, type OptionName, options, variableOf } from './options.ts';

export type Origin = 'default' | 'file' | 'environment' | 'flag';

/** A sentence for whoever wrote the configuration. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export interface ConfigSources {
  /** Flags with their dashes -> text. */
  readonly flags: ReadonlyMap<string, string>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Path of the configuration file, when there is one. */
  readonly file: string | undefined;
  readonly readFile: (path: string) => string;
}

export interface LoadedConfig<Values = Config> {
  readonly config: Values;
  readonly origins: Readonly<Record<string, Origin>>;
  /** SHA-256 (hexadecimal) of every effective value; a secret counts only as set or not. */
  readonly hash: string;
}

export type OptionTable = Readonly<Record<string, Option<unknown>>>;
type ValuesOf<Table> = { readonly [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never };

const variablePrefix = 'SUNDEW__';
/** Variables of ours that are not options: they name the configuration file and the failpoint of crash tests. */
export const fileVariable = 'SUNDEW__CONFIG';
const failpointVariable = 'SUNDEW_FAILPOINT';

/** The server's options from default < file < environment < flag. Throws `ConfigError`. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const failpoint = sources.environment[failpointVariable];
  const environment =
    failpoint === undefined
      ? sources.environment
      : { [variableOf('testing.failpoint')]: failpoint, ...sources.environment };
  return loadOptions(options, { ...sources, environment }) as LoadedConfig;
}

/** The same for any table of options. */
export function loadOptions<Table extends object>(table: Table, sources: ConfigSources): LoadedConfig<ValuesOf<Table>> {
  const byName = table as unknown as OptionTable;
  const fromFile =
    sources.file === undefined ? new Map<string, unknown>() : readConfigFile(sources.file, sources.readFile);
  refuseUnknown(byName, sources, fromFile);
  const values: Record<string, unknown> = {};
  const origins: Record<string, Origin> = {};
  for (const [name, option] of Object.entries(byName)) {
    const given = lookUp(option, sources, fromFile);
    origins[name] = given.origin;
    values[name] = given.origin === 'default' ? option.default : read(option, given.raw, given.where);
  }
  return { config: values as ValuesOf<Table>, origins, hash: hashOptions(byName, values) };
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
  if (text !== undefined) return { origin: 'environment', raw: text, where: variable };
  const secretFile = option.secret ? sources.environment[`${variable}_FILE`] : undefined;
  if (secretFile !== undefined) {
    return { origin: 'environment', raw: readText(secretFile, sources.readFile).trim(), where: `${variable}_FILE` };
  }
  for (const key of [option.key, ...(option.aliases ?? [])]) {
    if (fromFile.has(key)) return { origin: 'file', raw: fromFile.get(key), where: `"${key}" in ${sources.file}` };
  }
  return { origin: 'default', where: '' };
}

function read(option: Option<unknown>, raw: unknown, where: string): unknown {
  try {
    return option.kind.read(raw);
  } catch (error) {
    const expectation = error instanceof Error ? error.message : String(error);
    const shown = option.secret ? '' : `, not ${JSON.stringify(raw)}`;
    throw new ConfigError(`${where} must be ${expectation}${shown}`);
  }
}

function readText(path: string, readFile: (path: string) => string): string {
  try {
    return readFile(path);
  } catch (error) {
    throw new ConfigError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Dotted keys of a YAML or JSON file. */
function readConfigFile(path: string, readFile: (path: string) => string): Map<string, unknown> {
  const source = readText(path, readFile);
  let parsed: unknown;
  try {
    parsed = path.endsWith('.json') ? JSON.parse(source) : Bun.YAML.parse(source);
  } catch (error) {
    throw new ConfigError(`${path} is not valid: ${error instanceof Error ? error.message : String(error)}`);
  }
  const flat = new Map<string, unknown>();
  if (parsed !== null && parsed !== undefined) flatten(path, '', parsed, flat);
  return flat;
}

function flatten(path: string, prefix: string, value: unknown, flat: Map<string, unknown>): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    if (prefix === '') throw new ConfigError(`${path} must hold a mapping of sections`);
    flat.set(prefix, value);
    return;
  }
  for (const [name, member] of Object.entries(value))
    flatten(path, prefix === '' ? name : `${prefix}.${name}`, member, flat);
}

function refuseUnknown(table: OptionTable, sources: ConfigSources, fromFile: ReadonlyMap<string, unknown>): void {
  const all = Object.values(table);
  const keys = all.flatMap((option) => [option.key, ...(option.aliases ?? [])]);
  for (const key of fromFile.keys()) refuse(key, keys, `${sources.file} has an unknown key "${key}"`);
  const flags = all.flatMap((option) => (option.flag === undefined ? [] : [option.flag]));
  for (const flag of sources.flags.keys()) refuse(flag, flags, `unknown option ${flag}`);
  const variables = all.flatMap(({ key, secret }) =>
    secret ? [variableOf(key), `${variableOf(key)}_FILE`] : [variableOf(key)],
  );
  for (const name of Object.keys(sources.environment)) {
    if (name.startsWith(variablePrefix) && name !== fileVariable) refuse(name, variables, `unknown variable ${name}`);
  }
}

function refuse(word: string, known: readonly string[], message: string): void {
  if (known.includes(word)) return;
  const guess = didYouMean(word, known);
  throw new ConfigError(`${message}${guess === undefined ? '' : `; did you mean ${guess}?`}`);
}

/** SHA-256 of every value in writing; a secret counts only as set or not. */
export function hashOptions(table: OptionTable, values: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(table).map(([name, option]) => {
    const value = values[name];
    const shown = value === undefined ? '(unset)' : option.secret ? '(secret)' : option.kind.write(value);
    return `${option.key}=${shown}`;
  });
  return new Bun.CryptoHasher('sha256').update(lines.sort().join('\n')).digest('hex');
}

/** The bounds as this configuration moves them. Throws `ConfigError` when they no longer fit each other. */
export function limitsOf(config: Config): LimitOptions {
  const moved: Partial<Record<keyof LimitOptions, number>> = {};
  for (const name of Object.keys(options) as OptionName[]) {
    const value = config[name];
    if (Object.hasOwn(limits, name) && typeof value === 'number') moved[name as keyof LimitOptions] = value;
  }
  const bounds = { ...limits, ...moved };
  const broken = brokenRelation(bounds);
  if (broken !== undefined) throw new ConfigError(`the limits do not fit each other: it must hold that ${broken}`);
  return bounds;
}
