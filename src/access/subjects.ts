import { ServiceError } from '../protocol/service-error.ts';

/** The holders of grants and row filters: users by their names, roles and groups as `role:NAME`, `group:NAME`. */
export type SubjectKind = 'user' | 'role' | 'group';

const name = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/;
const rule = '1 to 64 letters, digits and ". _ @ + -", the first a letter or a digit';

/** The name when it may be a user's, else `invalid_name`. */
export function checkUserName(user: string): string {
  if (name.test(user)) return user;
  throw new ServiceError('invalid_name', `a user has a name of ${rule}`);
}

/** A role or group as a subject: `editor` and `role:editor` are the role, `group:staff` is the group. */
export function subjectOfRole(role: string): string {
  const subject = role.includes(':') ? role : `role:${role}`;
  return checkSubject(subject, ['role', 'group']);
}

/** As it is shown beside a user: roles by their names alone. */
export function shownRole(subject: string): string {
  return subject.startsWith('role:') ? subject.slice('role:'.length) : subject;
}

/** The subject when it is well-formed, else `invalid_name`. */
export function checkSubject(subject: string, kinds: readonly SubjectKind[] = ['user', 'role', 'group']): string {
  const kind = kindOfSubject(subject);
  const bare = kind === 'user' ? subject : subject.slice(kind.length + 1);
  if (kinds.includes(kind) && name.test(bare)) return subject;
  const forms = kinds.map((each) => (each === 'user' ? 'a user' : `"${each}:NAME"`)).join(' or ');
  throw new ServiceError('invalid_name', `this takes ${forms} with a name of ${rule}`);
}

export function kindOfSubject(subject: string): SubjectKind {
  if (subject.startsWith('role:')) return 'role';
  return subject.startsWith('group:') ? 'group' : 'user';
}
