import type { Permission, RowFilterEntry, SubjectBody } from '../protocol/auth/access.ts';
import { checkTableName } from '../protocol/names.ts';
import { ServiceError } from '../protocol/service-error.ts';
import { type AccessChanges, grantRecords, userNotFound } from './access-changes.ts';
import type { User } from './access-state.ts';
import type { Passwords } from './authentication/passwords.ts';
import { type AccessLevel, covers, type Grant } from './grants.ts';
import { type Caller, nameOf, requireAdmin, requireGrants, requireUser } from './principal.ts';
import { authValuesIn } from './subject-filters.ts';
import { checkSubject, checkUserName, kindOfSubject, type SubjectKind, shownRole, subjectOfRole } from './subjects.ts';

const usersMax = 100_000;
/** Roles and groups that a subject is given itself. */
const rolesMax = 256;

/** Fails for what no read could obey. */
export type CheckFilter = (filter: object) => Promise<void>;

/**
 * Users, and what is granted to users, roles and groups. Every method fails
 * with `forbidden` for a caller that may not use it.
 */
export class UserService {
  readonly #changes: AccessChanges;
  readonly #passwords: Passwords;
  readonly #checkFilter: CheckFilter;

  constructor(changes: AccessChanges, passwords: Passwords, checkFilter: CheckFilter) {
    this.#changes = changes;
    this.#passwords = passwords;
    this.#checkFilter = checkFilter;
  }

  /** Those that the caller may read, and the caller itself. */
  list({ principal }: Caller): User[] {
    const users = this.#changes.state.users();
    if (principal.kind === 'everyone') return users;
    return users.filter(({ name }) => name === principal.name || covers(principal.grants, 'user', name, 'read'));
  }

  /** The user that calls, with its roles and groups and those that they have. */
  self({ principal }: Caller): { readonly user: User; readonly roles: readonly string[] } {
    const user = this.#user(nameOf(principal));
    return { user, roles: this.#changes.state.allSubjectsOf(user.name).slice(1).map(shownRole) };
  }

  get(name: string, caller: Caller): User {
    requireUser(caller, name, 'read');
    return this.#user(name);
  }

  /** Roles and groups that a subject was given itself. */
  rolesOf(subject: string, caller: Caller): string[] {
    requireSubject(caller, subject, 'read');
    return this.#changes.state.subjectsOf(this.#subject(subject)).map(shownRole);
  }

  async create(
    name: string,
    given: { password: string; grants: readonly Grant[]; metadata: Readonly<Record<string, unknown>> },
    caller: Caller,
  ): Promise<User> {
    const { password, grants, metadata } = given;
    requireUser(caller, name, 'admin');
    checkUserName(name);
    requireGrants(caller, grants);
    this.#refuseKnown(name);
    const passwordHash = await this.#passwords.hash(password);
    await this.#changes.run(() => {
      this.#refuseKnown(name);
      if (this.#changes.state.userCount >= usersMax) {
        throw new ServiceError('limit_exceeded', `a server holds at most ${usersMax} users`);
      }
      const createdMs = this.#changes.clock.nowMs();
      const user = { name, passwordHash, metadata: JSON.stringify(metadata), createdMs };
      return { put: { users: [user], grants: grantRecords(name, grants) } };
    });
    return this.#user(name);
  }

  /** With everything that was said of the user, its keys included, and what others may read and write of it. */
  async remove(name: string, caller: Caller): Promise<void> {
    requireUser(caller, name, 'admin');
    await this.#changes.run(() => {
      const { state } = this.#changes;
      this.#user(name);
      requireGrants(caller, state.effectiveGrants(name));
      return {
        remove: {
          users: [name],
          grants: [...grantRecords(name, state.grantsOf(name)), ...state.grantsOfLife('user', name)],
          memberships: state.subjectsOf(name).map((subject) => ({ userName: name, subject })),
          apiKeys: state.keysOf(name).map(({ keyId }) => keyId),
          rowFilters: [...state.filtersOf(name).keys()].map((tableName) => ({ subject: name, tableName })),
        },
      };
    });
  }

  /** Setting the password of a user gives all its grants, so the caller must have them. */
  async setPassword(name: string, password: string, caller: Caller): Promise<void> {
    requireUser(caller, name, 'write');
    requireGrants(caller, this.#changes.state.effectiveGrants(this.#user(name).name));
    const passwordHash = await this.#passwords.hash(password);
    await this.#changes.run(() => {
      const { metadata, createdMs } = this.#user(name);
      requireGrants(caller, this.#changes.state.effectiveGrants(name));
      return { put: { users: [{ name, passwordHash, metadata: JSON.stringify(metadata), createdMs }] } };
    });
  }

  grantsOf(subject: string, caller: Caller): readonly Grant[] {
    requireSubject(caller, subject, 'read');
    return this.#changes.state.grantsOf(this.#subject(subject));
  }

  async grant(subject: string, grant: Grant, caller: Caller): Promise<void> {
    requireSubject(caller, subject, 'admin');
    requireGrants(caller, [grant]);
    await this.#changes.run(() => ({ put: { grants: grantRecords(this.#subject(subject), [grant]) } }));
  }

  /** Takes back every grant of the subject on the resource. */
  async revoke(subject: string, resource: string, type: Permission['resource_type'], caller: Caller): Promise<void> {
    requireSubject(caller, subject, 'admin');
    await this.#changes.run(() => {
      const held = this.#changes.state.grantsOf(this.#subject(subject));
      const taken = held.filter((grant) => grant.resource === resource && grant.resourceType === type);
      requireGrants(caller, taken);
      return taken.length === 0 ? undefined : { remove: { grants: grantRecords(subject, taken) } };
    });
  }

  /** Gives a role or group, with all that it has, to a user or to another role or group. Fails with `role_circle`. */
  async addRole(holder: string, role: string, caller: Caller): Promise<void> {
    requireAdmin(caller);
    const given = subjectOfRole(role);
    await this.#changes.run(() => {
      const { state } = this.#changes;
      const userName = this.#subject(holder);
      requireGrants(caller, state.effectiveGrants(given));
      if (state.allSubjectsOf(given).includes(userName)) throw roleCircle(userName, given);
      if (state.subjectsOf(userName).length >= rolesMax) {
        throw new ServiceError('limit_exceeded', `"${holder}" has ${rolesMax} roles and groups, the most there may be`);
      }
      return { put: { memberships: [{ userName, subject: given }] } };
    });
  }

  async removeRole(holder: string, role: string, caller: Caller): Promise<void> {
    requireAdmin(caller);
    const subject = subjectOfRole(role);
    await this.#changes.run(() => {
      const userName = this.#subject(holder);
      requireGrants(caller, this.#changes.state.effectiveGrants(subject));
      return { remove: { memberships: [{ userName, subject }] } };
    });
  }

  rowFilters(subject: string, caller: Caller): RowFilterEntry[] {
    requireSubject(caller, subject, 'read');
    const filters = this.#changes.state.filtersOf(this.#subject(subject));
    return [...filters].map(([table, filter]) => ({ table, filter: filter as Record<string, unknown> }));
  }

  rowFilter(subject: string, table: string, caller: Caller): RowFilterEntry {
    requireSubject(caller, subject, 'read');
    const filter = this.#changes.state.filtersOf(this.#subject(subject)).get(table);
    if (filter === undefined) throw filterNotFound(subject, table);
    return { table, filter: filter as Record<string, unknown> };
  }

  /** Replaces the subject's filter for a table, or for every table with `*`. Fails as `checkRowFilter` does. */
  async setRowFilter(subject: string, table: string, filter: object, caller: Caller): Promise<RowFilterEntry> {
    requireAdmin(caller);
    await checkRowFilter(table, filter, this.#checkFilter);
    const row = { subject: this.#subject(subject), tableName: table, filter: JSON.stringify(filter) };
    await this.#changes.run(() => ({ put: { rowFilters: [{ ...row, subject: this.#subject(subject) }] } }));
    return this.rowFilter(subject, table, caller);
  }

  async removeRowFilter(subject: string, table: string, caller: Caller): Promise<void> {
    requireAdmin(caller);
    await this.#changes.run(() => {
      if (!this.#changes.state.filtersOf(this.#subject(subject)).has(table)) throw filterNotFound(subject, table);
      return { remove: { rowFilters: [{ subject, tableName: table }] } };
    });
  }

  subjects(kind: SubjectKind | undefined, caller: Caller): SubjectBody[] {
    requireAdmin(caller);
    const all = this.#changes.state.subjects().map((subject) => ({ subject, kind: kindOfSubject(subject) }));
    return all.filter((each) => kind === undefined || each.kind === kind);
  }

  /** Roles and groups are there as soon as somebody names them, users are made. */
  #subject(subject: string): string {
    checkSubject(subject);
    return kindOfSubject(subject) === 'user' ? this.#user(subject).name : subject;
  }

  #user(name: string): User {
    const user = this.#changes.state.user(name);
    if (user === undefined) throw userNotFound(name);
    return user;
  }

  #refuseKnown(name: string): void {
    if (this.#changes.state.user(name) === undefined) return;
    throw new ServiceError('already_exists', `there is a user "${name}" already`);
  }
}

/** Fails with `invalid_query` for a filter that no read could obey, and `invalid_name` for one of what no table can be. */
export async function checkRowFilter(table: string, filter: object, checkFilter: CheckFilter): Promise<void> {
  if (table !== '*') checkTableName(table);
  try {
    authValuesIn(filter);
  } catch (error) {
    throw new ServiceError('invalid_query', `row filter: ${(error as Error).message}`);
  }
  let first: unknown;
  for (const [at, sample] of samples.entries()) {
    try {
      await checkFilter(withSample(filter, sample) as object);
      return;
    } catch (error) {
      if (at === 0) first = error;
    }
  }
  throw first;
}

/** The kinds of values that a user may have; a filter is valid when it can be read with one kind of them. */
const samples: readonly unknown[] = ['sample', 1, ['sample'], '2026-01-01T00:00:00Z', true];

function withSample(node: unknown, sample: unknown): unknown {
  if (typeof node !== 'object' || node === null) return node;
  if (Array.isArray(node)) return node.map((item) => withSample(item, sample));
  if (Object.hasOwn(node, '$auth')) return (node as { $auth: unknown }).$auth === 'roles' ? ['sample'] : sample;
  return Object.fromEntries(Object.entries(node).map(([name, member]) => [name, withSample(member, sample)]));
}

/** A user may be another's to read or to administer, a role or a group is not. */
function requireSubject(caller: Caller, subject: string, level: AccessLevel): void {
  if (kindOfSubject(subject) === 'user') requireUser(caller, subject, level);
  else requireAdmin(caller);
}

function filterNotFound(subject: string, table: string): ServiceError {
  return new ServiceError('row_filter_not_found', `"${subject}" has no row filter for the table "${table}"`);
}

function roleCircle(holder: string, given: string): ServiceError {
  const message = `"${given}" has "${holder}" already, itself or through others; a role cannot have itself`;
  return new ServiceError('role_circle', message);
}
