import { permissionOf } from '../../http/auth/access-services.ts';
import type { ApiKeyBody } from '../../protocol/auth/access.ts';
import type { ClientAction, ClientActionSpec } from '../client/client-verb.ts';
import { printEach, printJson } from '../client/client-verb.ts';
import { bodyText, objectOf } from '../client/written-json.ts';
import { exitCodes, type VerbContext } from '../verb.ts';
import { lifetimeOf, permissionsOf } from './key-words.ts';
import { userPath } from './subject-path.ts';

type Database = Parameters<ClientAction>[0];

export const apiKeyActions: readonly ClientActionSpec[] = [
  { name: 'api-keys list', takes: ['USER'], help: 'Print the keys of a user, without their secrets.', run: list },
  { name: 'api-keys create', takes: ['USER'], help: 'Make a key of a user and print it, this once.', run: create },
  {
    name: 'api-keys revoke',
    takes: ['USER', 'KEY_ID'],
    help: 'Revoke a key; its next request is refused.',
    run: async ({ call }, _context, user, keyId) => {
      await call('DELETE', userPath(user, 'api-keys', keyId));
      return exitCodes.done;
    },
  },
];

async function list({ call }: Database, context: VerbContext, user: string): Promise<number> {
  const keys = (await call('GET', userPath(user, 'api-keys'))) as unknown as readonly ApiKeyBody[];
  return printEach(context, keys, ({ key_id, name, expires_at }) => [key_id, name, expires_at ?? 'never expires']);
}

async function create({ call }: Database, context: VerbContext, user: string): Promise<number> {
  const { flags } = context.args;
  const filters = flags.get('--row-filters');
  lifetimeOf(context.args);
  const asked = bodyText({
    name: flags.get('--name') ?? 'command line',
    expires_in: flags.get('--expires-in'),
    permissions: permissionsOf(context.args)?.map(permissionOf),
    row_filter: filters === undefined ? undefined : objectOf(filters, '--row-filters'),
  });
  const made = await call('POST', userPath(user, 'api-keys'), asked);
  if (flags.has('--json')) return printJson(context, made);
  context.print(`${made.encoded}\n`);
  return exitCodes.done;
}
