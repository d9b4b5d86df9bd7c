import { AccessChanges } from '../access/access-changes.ts';
import { AccessState, type ApiKey, readGrant } from '../access/access-state.ts';
import { createAdminUser } from '../access/first-admin.ts';
import type { Grant } from '../access/grants.ts';
import { lifetimeWords, readLifetime } from '../access/key-lifetime.ts';
import { KeyService } from '../access/key-service.ts';
import { serverCaller } from '../access/principal.ts';
import { ConfigError } from '../config/config-error.ts';
import { systemClock } from '../lib/clock.ts';
import { withOfflineAccess } from '../storage/catalog/offline-access.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type Verb, type VerbContext } from './verb.ts';

const usage = 'usage: sundew keys create|list|revoke [KEY_ID] [options]';

/** The directory belongs to those who may open it, and they may do everything. */
const caller = serverCaller('keys', new AbortController().signal);

interface Offline {
  readonly changes: AccessChanges;
  readonly keys: KeyService;
}

/** `sundew keys`: keys of a data directory that no server holds. It is the way back in for who has lost every key. */
export const keys: Verb = {
  name: 'keys',
  summary: 'Make, list and revoke API keys of a data directory while no server uses it.',
  usage: 'create|list|revoke [KEY_ID] [--data-dir DIR] [options]',
  flags: [
    { flag: '--user', value: 'NAME', help: 'create: the user; `admin`, an administrator, unless given.' },
    { flag: '--name', value: 'TEXT', help: 'create: what people call the key.' },
    { flag: '--expires-in', value: 'DURATION', help: 'create: such as 720h or 30d; a key without it stays valid.' },
    {
      flag: '--permissions',
      value: 'LIST',
      help: 'create: TYPE:RESOURCE:LEVEL with commas between them, such as table:books:read; all of the user unless given.',
    },
    { flag: '--json', help: 'JSON.' },
    ...configFlags(['dataDir']),
  ],
  async run(context) {
    const [action, keyId, ...more] = context.args.positionals;
    if (action === undefined || more.length > 0 || (keyId !== undefined) !== (action === 'revoke')) {
      throw new ConfigError(usage);
    }
    await withOfflineAccess(configOf(context).config.dataDir, async (store) => {
      const changes = new AccessChanges({
        state: AccessState.of(store.rows()),
        store,
        clock: systemClock,
        onChange: () => undefined,
      });
      const offline = { changes, keys: new KeyService(changes, () => Promise.resolve()) };
      if (action === 'create') return create(offline, context);
      if (action === 'list') return list(offline, context);
      if (action === 'revoke' && keyId !== undefined) return revoke(offline, keyId, context);
      throw new ConfigError(usage);
    });
    return exitCodes.done;
  },
};

async function create({ changes, keys }: Offline, { args, print }: VerbContext): Promise<void> {
  const { flags } = args;
  const user = flags.get('--user') ?? 'admin';
  const request = {
    name: flags.get('--name') ?? 'command line',
    lifetimeMs: lifetimeOf(flags.get('--expires-in')),
    permissions: flags.get('--permissions')?.split(',').map(readPermission),
    rowFilter: undefined,
  };
  if (user === 'admin' && changes.state.user(user) === undefined) await createAdminUser(changes);
  const { key, secret } = await keys.create(user, request, caller);
  const shown = { key_id: key.keyId, username: user, key_secret: secret.secret, encoded: secret.encoded };
  print(flags.has('--json') ? `${JSON.stringify(shown, null, 2)}\n` : `${secret.encoded}\n`);
}

function list({ keys }: Offline, { args, print }: VerbContext): Promise<void> {
  const all = keys.all(caller).map(describe);
  if (args.flags.has('--json')) print(`${JSON.stringify(all, null, 2)}\n`);
  else
    for (const { key_id, username, name, expires_at } of all)
      print(`${key_id}  ${username}  ${name}  ${expires_at ?? 'never expires'}\n`);
  return Promise.resolve();
}

async function revoke({ keys }: Offline, keyId: string, { explain }: VerbContext): Promise<void> {
  await keys.revoke(keyId, undefined, caller);
  explain(`the key ${keyId} is revoked\n`);
}

function describe({ keyId, userName, name, createdMs, expiresMs }: ApiKey) {
  return {
    key_id: keyId,
    username: userName,
    name,
    created_at: new Date(createdMs).toISOString(),
    expires_at: expiresMs === undefined ? null : new Date(expiresMs).toISOString(),
  };
}

function lifetimeOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const lifetimeMs = readLifetime(text);
  if (lifetimeMs !== undefined) return lifetimeMs;
  throw new ConfigError(`--expires-in takes ${lifetimeWords}, not "${text}"`);
}

/** `table:books:read`; the name in the middle may have colons. */
function readPermission(text: string): Grant {
  const [, resourceType = '', resource = '', level = ''] = /^([^:]+):(.+):([^:]+)$/.exec(text) ?? [];
  try {
    return readGrant({ resourceType, resource, level });
  } catch {
    throw new ConfigError(`--permissions takes TYPE:RESOURCE:LEVEL, such as table:books:read, not "${text}"`);
  }
}
