import { readGrant } from '../../access/access-state.ts';
import type { Grant } from '../../access/grants.ts';
import { lifetimeWords, readLifetime } from '../../access/key-lifetime.ts';
import { ConfigError } from '../../config/config-error.ts';
import type { Arguments } from '../arguments.ts';

/** The lifetime in `--expires-in`, in milliseconds; undefined where it is not given. Throws `ConfigError`. */
export function lifetimeOf({ flags }: Arguments): number | undefined {
  const text = flags.get('--expires-in');
  if (text === undefined) return undefined;
  const lifetimeMs = readLifetime(text);
  if (lifetimeMs !== undefined) return lifetimeMs;
  throw new ConfigError(`--expires-in takes ${lifetimeWords}, not "${text}"`);
}

/** The grants in `--permissions`; undefined where it is not given. Throws `ConfigError`. */
export function permissionsOf({ flags }: Arguments): Grant[] | undefined {
  return flags
    .get('--permissions')
    ?.split(',')
    .map((text) => readPermission(text, '--permissions takes'));
}

/** Reads `table:books:read`; the name in the middle may have colons. Throws `ConfigError`, whose sentence begins with `what`. */
export function readPermission(text: string, what: string): Grant {
  const [, resourceType = '', resource = '', level = ''] = /^([^:]+):(.+):([^:]+)$/.exec(text) ?? [];
  try {
    return readGrant({ resourceType, resource, level });
  } catch {
    throw new ConfigError(`${what} TYPE:RESOURCE:LEVEL, such as table:books:read, not "${text}"`);
  }
}
