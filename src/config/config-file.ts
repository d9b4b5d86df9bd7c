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

function parseYaml(path: string, source: string): unknown {
  // Loaded here: a start without a file is sooner without it.
  const { readYaml } = require('./read-yaml.ts') as typeof import('./read-yaml.ts');
  try {
    return readYaml(source);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new ConfigError(`${path} is not valid: ${error.message}`);
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
