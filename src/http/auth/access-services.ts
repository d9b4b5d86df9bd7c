import { readGrant } from '../../access/access-state.ts';
import type { Grant } from '../../access/grants.ts';
import type { KeyService } from '../../access/key-service.ts';
import type { UserService } from '../../access/user-service.ts';
import type { Permission } from '../../protocol/auth/access.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** The services behind `/auth/v1` while authentication is on. */
export interface AccessServices {
  readonly users: UserService;
  readonly keys: KeyService;
}

/** Throws `auth_disabled` where there are none. */
export function required(services: AccessServices | undefined): AccessServices {
  if (services !== undefined) return services;
  const message = 'user management is not configured: start the server with --auth true';
  throw new ServiceError('auth_disabled', message);
}

export function grantOf({ resource, resource_type: resourceType, type: level }: Permission): Grant {
  return readGrant({ resourceType, resource, level });
}

export function permissionOf({ resource, resourceType, level }: Grant): Permission {
  return { resource, resource_type: resourceType, type: level };
}

/** Grants and filters of users lie below `/users`, those of every subject below `/subjects`. */
export type SubjectPath = '/auth/v1/users/:user' | '/auth/v1/subjects/:subject';

/** The subject of a path of either form. */
export function subjectOf({ user, subject }: { readonly user?: string; readonly subject?: string }): string {
  return user ?? subject ?? '';
}
