import { ConfigError } from '../../config/config-error.ts';
import type { SubjectBody } from '../../protocol/auth/access.ts';
import { verbOfActions } from '../actions.ts';
import {
  type ClientAction,
  type ClientActionSpec,
  clientFlags,
  printEach,
  printJson,
  runClient,
  sayingRefusals,
} from '../client/client-verb.ts';
import { serverAddress } from '../server-address.ts';
import { apiKeyActions } from './api-keys.ts';
import { permissionActions, roleActions } from './grants.ts';
import { withOfflineCalls } from './offline-access.ts';
import { passwordFlag } from './password.ts';
import { rowFilterActions } from './row-filters.ts';
import { userActions } from './users.ts';

const kinds = ['user', 'role', 'group'];

const callerAction: ClientActionSpec = {
  name: 'me',
  takes: [],
  help: 'Print whose the credential is, and all that it allows.',
  async run({ call }, context) {
    if (!context.args.flags.has('--url')) throw new ConfigError('"auth me" asks a server: give --url');
    return printJson(context, await call('GET', '/auth/v1/me'));
  },
};

const subjectAction: ClientActionSpec = {
  name: 'subjects list',
  takes: [],
  help: 'Print the users, roles and groups that something was said of.',
  async run({ call }, context) {
    const kind = context.args.flags.get('--kind');
    if (kind !== undefined && !kinds.includes(kind)) throw new ConfigError(`--kind must be ${kinds.join(', ')}`);
    const query = kind === undefined ? '' : `?${new URLSearchParams({ kind })}`;
    const subjects = (await call('GET', `/auth/v1/subjects${query}`)) as unknown as readonly SubjectBody[];
    return printEach(context, subjects, (each) => [each.subject, each.kind]);
  },
};

/** `sundew auth`: users, what they may do, and their keys, of a running server or of a data directory at rest. */
export const auth = verbOfActions<ClientAction>(
  {
    name: 'auth',
    summary: 'Manage users, permissions, roles, row filters and keys, through a server or in a data directory at rest.',
    actions: [
      callerAction,
      ...userActions,
      ...permissionActions,
      ...roleActions,
      ...rowFilterActions,
      subjectAction,
      ...apiKeyActions,
    ],
    flags: [
      passwordFlag,
      {
        flag: '--permissions',
        value: 'LIST',
        of: ['users create', 'api-keys create'],
        help: 'TYPE:RESOURCE:LEVEL with commas between them, such as table:books:read; a key without them has all of its user.',
      },
      { flag: '--metadata', value: 'JSON', of: ['users create'], help: 'An object, to which row filters may refer.' },
      { flag: '--filter', value: 'JSON', of: ['row-filters set'], help: 'A query node.' },
      { flag: '--file', value: 'FILE', of: ['row-filters set'], help: 'A file with it.' },
      { flag: '--name', value: 'TEXT', of: ['api-keys create'], help: 'What people call the key.' },
      {
        flag: '--expires-in',
        value: 'DURATION',
        of: ['api-keys create'],
        help: 'Such as 720h or 30d; a key without it stays valid.',
      },
      {
        flag: '--row-filters',
        value: 'JSON',
        of: ['api-keys create'],
        help: 'Filters of the key beside those of its user, by table.',
      },
      { flag: '--kind', value: kinds.join('|'), of: ['subjects list'], help: 'Only these.' },
      {
        flag: '--json',
        of: [
          ...listsOf(userActions, permissionActions, roleActions, rowFilterActions),
          'subjects list',
          'api-keys list',
          'api-keys create',
        ],
        help: 'One JSON object a line; of a new key all that is known.',
      },
      ...clientFlags,
    ],
  },
  (run, context, given) =>
    serverAddress(context) !== undefined
      ? runClient(context, (database) => run(database, context, ...given))
      : sayingRefusals(context, () => withOfflineCalls(context, (database) => run(database, context, ...given))),
);

function listsOf(...families: readonly (readonly ClientActionSpec[])[]): string[] {
  return families.flat().flatMap(({ name }) => (name.endsWith(' list') ? [name] : []));
}
