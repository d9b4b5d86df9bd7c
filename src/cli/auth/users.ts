import { permissionOf } from '../../http/auth/access-services.ts';
import type { ClientAction, ClientActionSpec } from '../client/client-verb.ts';
import { printEach, printJson } from '../client/client-verb.ts';
import { bodyText, objectOf } from '../client/written-json.ts';
import { exitCodes, type VerbContext } from '../verb.ts';
import { permissionsOf } from './key-words.ts';
import { passwordOf } from './password.ts';
import { userPath } from './subject-path.ts';

export const userActions: readonly ClientActionSpec[] = [
  { name: 'users list', takes: [], help: 'Print the users that the caller may see.', run: list },
  {
    name: 'users get',
    takes: ['USER'],
    help: 'Print a user.',
    run: async ({ call }, context, user) => printJson(context, await call('GET', userPath(user))),
  },
  { name: 'users create', takes: ['USER'], help: 'Make a user and print it.', run: create },
  {
    name: 'users delete',
    takes: ['USER'],
    help: 'Remove a user with its grants and keys.',
    run: async ({ call }, _context, user) => {
      await call('DELETE', userPath(user));
      return exitCodes.done;
    },
  },
  {
    name: 'users password',
    takes: ['USER'],
    help: 'Set the password of a user.',
    run: async ({ call }, context, user) => {
      await call('PUT', userPath(user, 'password'), { new_password: passwordOf(context) });
      return exitCodes.done;
    },
  },
];

async function list({ call }: Parameters<ClientAction>[0], context: VerbContext): Promise<number> {
  const users = (await call('GET', '/auth/v1/users')) as unknown as readonly { username: string }[];
  return printEach(context, users, ({ username }) => [username]);
}

async function create({ call }: Parameters<ClientAction>[0], context: VerbContext, user: string): Promise<number> {
  const metadata = context.args.flags.get('--metadata');
  const asked = bodyText({
    initial_policies: permissionsOf(context.args)?.map(permissionOf),
    metadata: metadata === undefined ? undefined : objectOf(metadata, '--metadata'),
    password: passwordOf(context),
  });
  return printJson(context, await call('POST', userPath(user), asked));
}
