import { accessLevels, grantedTypes } from '../../access/grants.ts';
import { subjectOfRole } from '../../access/subjects.ts';
import { ConfigError } from '../../config/config-error.ts';
import { permissionOf } from '../../http/auth/access-services.ts';
import type { Permission } from '../../protocol/auth/access.ts';
import type { ClientAction, ClientActionSpec } from '../client/client-verb.ts';
import { printEach } from '../client/client-verb.ts';
import { exitCodes, type VerbContext } from '../verb.ts';
import { readPermission } from './key-words.ts';
import { subjectPath } from './subject-path.ts';

type Database = Parameters<ClientAction>[0];

export const permissionActions: readonly ClientActionSpec[] = [
  {
    name: 'permissions list',
    takes: ['SUBJECT'],
    help: 'Print the grants of a user, role or group, without those of its roles.',
    run: listPermissions,
  },
  {
    name: 'permissions grant',
    takes: ['SUBJECT', 'TYPE:RESOURCE:LEVEL'],
    help: 'Grant something, such as table:books:read.',
    async run({ call }, _context, subject, words) {
      const permission = permissionOf(readPermission(words, 'a permission is'));
      await call('POST', subjectPath(subject, 'permissions'), permission);
      return exitCodes.done;
    },
  },
  {
    name: 'permissions revoke',
    takes: ['SUBJECT', 'TYPE:RESOURCE'],
    help: 'Take back all grants on a resource, such as table:books.',
    async run({ call }, _context, subject, words) {
      const query = new URLSearchParams(resourceOf(words));
      await call('DELETE', `${subjectPath(subject, 'permissions')}?${query}`);
      return exitCodes.done;
    },
  },
];

export const roleActions: readonly ClientActionSpec[] = [
  {
    name: 'roles list',
    takes: ['SUBJECT'],
    help: 'Print the roles and groups that a user, role or group was given.',
    run: async ({ call }, context, subject) => {
      const roles = (await call('GET', subjectPath(subject, 'roles'))) as unknown as readonly string[];
      return printEach(context, roles, (role) => [role]);
    },
  },
  {
    name: 'roles assign',
    takes: ['SUBJECT', 'ROLE'],
    help: 'Give a role, or group:NAME; it is there as soon as somebody names it.',
    run: async ({ call }, _context, subject, role) => {
      await call('POST', subjectPath(subject, 'roles'), { role: subjectOfRole(role) });
      return exitCodes.done;
    },
  },
  {
    name: 'roles remove',
    takes: ['SUBJECT', 'ROLE'],
    help: 'Take a role or group back.',
    run: async ({ call }, _context, subject, role) => {
      const query = new URLSearchParams({ role: subjectOfRole(role) });
      await call('DELETE', `${subjectPath(subject, 'roles')}?${query}`);
      return exitCodes.done;
    },
  },
];

async function listPermissions({ call }: Database, context: VerbContext, subject: string): Promise<number> {
  const held = (await call('GET', subjectPath(subject, 'permissions'))) as unknown as readonly Permission[];
  return printEach(context, held, ({ resource_type, resource, type }) => [`${resource_type}:${resource}:${type}`]);
}

/** A level at the end is refused: it would be taken for a part of the name, and nothing would be taken back. */
function resourceOf(words: string): { resource_type: string; resource: string } {
  const [, type = '', resource = ''] = /^([^:]+):(.+)$/.exec(words) ?? [];
  const isKnown = grantedTypes.some((each) => each === type);
  if (isKnown && !accessLevels.some((level) => resource.endsWith(`:${level}`)))
    return { resource_type: type, resource };
  throw new ConfigError(`what is revoked is TYPE:RESOURCE without a level, such as table:books, not "${words}"`);
}
