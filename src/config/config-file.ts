import { ConfigError } from './config-error.ts';

type ReadFile = (path: string) => string;

/** Dotted keys of a YAML or JSON file; a mapping without members has its own. Throws `ConfigError`. */
export function readConfigFile(path: string, readFile: ReadFile): Map<string, unknown> {
  const source = readText(path, readFile);
  const parsed = parseYaml(path, source);
  const flat = new Map<string, unknown>();
  if (parsed !== null && parsed !== undefined) flatten(path, '', parsed, flat);
  return flat;
}

/** JSON is YAML, too. A key that is there twice is refused: the section that is left out may be the one that asks for credentials. */
function parseYaml(path: string, source: string): unknown {
  // Loaded here: a start without a file is sooner without it.
  const { parse, YAMLParseError } = require('yaml') as typeof import('yaml');
  try {
    return parse(source, { merge: true });
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    // The lines behind the first are the file's own, which may hold a secret.
    const reason = error.message.split(/:?\n/, 1)[0];
    const advice = error.code === 'DUPLICATE_KEY' ? '; put the members of both together' : '';
    throw new ConfigError(`${path} is not valid: ${reason}${advice}`);
  }
}

/** The text of a file. Throws `ConfigError`. */
export function readText(path: string, readFile: ReadFile): string {
  try {
    return readFile(path);
  } catch (error) {
    throw new ConfigError(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function flatten(path: string, prefix: string, value: unknown, flat: Map<string, unknown>): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    if (prefix === '') throw new ConfigError(`${path} must hold a mapping of sections`);
    if (flat.has(prefix)) throw new ConfigError(`${path} has "${prefix}" twice, as a key and within its section`);
    flat.set(prefix, value);
    return;
  }
  const members = Object.entries(value);
  // A mapping without members is told from one that is not there.
  if (members.length === 0 && prefix !== '') flat.set(prefix, value);
  for (const [name, member] of members) flatten(path, prefix === '' ? name : `${prefix}.${name}`, member, flat);
}
