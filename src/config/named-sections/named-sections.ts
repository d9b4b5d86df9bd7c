import { ConfigError } from '../config-error.ts';
import { type Option, type OptionTable, variableOf } from '../option.ts';

/** A part of the configuration whose entries the operator names: `connections.NAME.*`. */
export interface NamedSection {
  /** First segment of its keys. */
  readonly key: string;
  readonly help: string;
  /** Options of one entry; their keys are those below `SECTION.NAME`. */
  readonly members: OptionTable;
  /** The first conflict between the members of one entry, as a sentence; undefined when there is none. */
  readonly complaint?: (entry: never, name: string) => string | undefined;
}

type Sections = Readonly<Record<string, NamedSection>>;

const namePattern = /^[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*$/;
const nameCharsMax = 64;

/** Letters and digits with single `-` and `_` between them, at most 64 characters. */
export function isEntryName(name: string): boolean {
  return name.length <= nameCharsMax && namePattern.test(name);
}

/** The options of every entry that a file or the environment names, by their keys. */
export function tableOfSections(
  sections: Sections,
  keys: readonly string[],
  variables: readonly string[],
): Record<string, Option<unknown>> {
  const table: Record<string, Option<unknown>> = {};
  for (const section of Object.values(sections)) {
    for (const name of namesOf(section, keys, variables)) {
      for (const member of Object.values(section.members)) {
        const within = (key: string) => `${section.key}.${name}.${key}`;
        const aliases = member.aliases?.map(within) ?? [];
        table[within(member.key)] = { ...member, key: within(member.key), aliases, reloadable: true };
      }
    }
  }
  return table;
}

/** A variable names an entry of the file by its name in capitals, with `_` for `-`; otherwise it makes one. */
function namesOf({ key }: NamedSection, keys: readonly string[], variables: readonly string[]): string[] {
  const byVariable = new Map<string, string>();
  for (const each of keys.filter((given) => given.startsWith(`${key}.`))) {
    const name = each.split('.')[1] ?? '';
    if (!isEntryName(name)) {
      throw new ConfigError(`"${key}.${name}": a name has letters and digits, with single "-" or "_" between them`);
    }
    const variable = variableOf(`${key}.${name}`);
    const other = byVariable.get(variable);
    if (other !== undefined && other !== name) {
      throw new ConfigError(`"${key}.${name}" and "${key}.${other}" have the same variables; rename one of them`);
    }
    byVariable.set(variable, name);
  }
  const prefix = `${variableOf(key)}__`;
  for (const each of variables.filter((given) => given.startsWith(prefix))) {
    const given = each.slice(prefix.length).split('__')[0] ?? '';
    const variable = `${prefix}${given}`;
    if (isEntryName(given) && !byVariable.has(variable)) byVariable.set(variable, given.toLowerCase());
  }
  return [...byVariable.values()];
}

/** The entries of every section: by section, by name, the values by the names of the members. Throws `ConfigError`. */
export function entriesOf(
  sections: Sections,
  values: Readonly<Record<string, unknown>>,
): Record<string, ReadonlyMap<string, object>> {
  const entries: Record<string, ReadonlyMap<string, object>> = {};
  for (const [id, section] of Object.entries(sections)) {
    const prefix = `${section.key}.`;
    const names = Object.keys(values).filter((key) => key.startsWith(prefix));
    const distinct = new Set(names.map((key) => key.slice(prefix.length).split('.')[0] ?? ''));
    entries[id] = new Map([...distinct].map((name) => [name, entryOf(section, name, values)]));
  }
  return entries;
}

function entryOf({ key, members, complaint }: NamedSection, name: string, values: Readonly<Record<string, unknown>>) {
  const entry = Object.fromEntries(
    Object.entries(members).map(([member, option]) => [member, values[`${key}.${name}.${option.key}`]]),
  );
  const wrong = complaint?.(entry as never, name);
  if (wrong !== undefined) throw new ConfigError(`"${key}.${name}"${wrong}`);
  return entry;
}
