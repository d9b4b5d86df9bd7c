import { type AccessChanges, offlineChanges } from '../access/access-changes.ts';
import type { ApiKey } from '../access/access-state.ts';
import { createAdminUser } from '../access/first-admin.ts';
import { KeyService } from '../access/key-service.ts';
import { serverCaller } from '../access/principal.ts';
import { systemClock } from '../lib/clock.ts';
import { openOfflineAudit } from '../server/access/open-audit.ts';
import { withOfflineAccess } from '../storage/catalog/offline-access.ts';
import { verbOfActions } from './actions.ts';
import { lifetimeOf, permissionsOf } from './auth/key-words.ts';
import { configFlags, configOf } from './load-config.ts';
import { exitCodes, type VerbContext } from './verb.ts';

/** The directory belongs to those who may open it, and they may do everything. */
const caller = serverCaller('keys', new AbortController().signal);

interface Offline {
  readonly changes: AccessChanges;
  readonly keys: KeyService;
  readonly openAudit: () => ReturnType<typeof openOfflineAudit>;
}

type Action = (offline: Offline, context: VerbContext, ...given: string[]) => Promise<void>;

/** `sundew keys`: keys of a data directory that no server holds. It is the way back in for who has lost every key. */
export const keys = verbOfActions<Action>(
  {
    name: 'keys',
    summary: 'Make, list and revoke API keys of a data directory while no server uses it.',
    actions: [
      { name: 'create', takes: [], help: 'Make a key and print it, this once.', run: create },
      { name: 'list', takes: [], help: 'Print the keys without their secrets.', run: list },
      { name: 'revoke', takes: ['KEY_ID'], help: 'Revoke a key.', run: revoke },
    ],
    flags: [
      {
        flag: '--user',
        value: 'NAME',
        of: ['create'],
        help: 'The user; `admin`, an administrator, unless given.',
      },
      { flag: '--name', value: 'TEXT', of: ['create'], help: 'What people call the key.' },
      {
        flag: '--expires-in',
        value: 'DURATION',
        of: ['create'],
        help: 'Such as 720h or 30d; a key without it stays valid.',
      },
      {
        flag: '--permissions',
        value: 'LIST',
        of: ['create'],
        help: 'TYPE:RESOURCE:LEVEL with commas between them, such as table:books:read; all of the user unless given.',
      },
      { flag: '--json', of: ['create', 'list'], help: 'JSON.' },
      ...configFlags(['dataDir']),
    ],
  },
  async (run, context, given) => {
    const { config } = configOf(context);
    await withOfflineAccess(config.dataDir, async (store) => {
      const changes = offlineChanges(store, systemClock);
      const keys = new KeyService(changes, () => Promise.resolve());
      const openAudit = () => openOfflineAudit({ config, clock: systemClock, explain: context.explain });
      await run({ changes, keys, openAudit }, context, ...given);
    });
    return exitCodes.done;
  },
);

async function create({ changes, keys, openAudit }: Offline, { args, print }: VerbContext): Promise<void> {
  const { flags } = args;
  const user = flags.get('--user') ?? 'admin';
  const request = {
    name: flags.get('--name') ?? 'command line',
    lifetimeMs: lifetimeOf(args),
    permissions: permissionsOf(args),
    rowFilter: undefined,
  };
  using audit = openAudit();
  if (user === 'admin' && changes.state.user(user) === undefined) {
    await createAdminUser(changes);
    audit.note({ method: 'POST', route: '/auth/v1/users/:user', params: { user }, status: 201 });
  }
  const { key, secret } = await keys.create(user, request, caller);
  const params = { user, key: key.keyId };
  audit.note({ method: 'POST', route: '/auth/v1/users/:user/api-keys', params, status: 201 });
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

async function revoke({ changes, keys, openAudit }: Offline, { explain }: VerbContext, keyId: string): Promise<void> {
  using audit = openAudit();
  const user = changes.state.key(keyId)?.userName ?? '';
  await keys.revoke(keyId, undefined, caller);
  const params = { user, key: keyId };
  audit.note({ method: 'DELETE', route: '/auth/v1/users/:user/api-keys/:key', params, status: 204 });
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
