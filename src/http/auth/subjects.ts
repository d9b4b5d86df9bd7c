import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import {
  message,
  type Permission,
  permission,
  rowFilterEntry,
  rowFilterNode,
  subject,
} from '../../protocol/auth/access.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import type { RouteAccess } from '../routing/route-access.ts';
import {
  type AccessServices,
  grantOf,
  permissionOf,
  required,
  type SubjectPath,
  subjectOf,
} from './access-services.ts';

const tag = 'Users and keys';
const bytesMax = limits.smallBodyBytesMax;
const kinds = Type.Union([Type.Literal('user'), Type.Literal('role'), Type.Literal('group'), Type.Literal('subject')]);

/** Grants and row filters, of users below `/users` and of every subject below `/subjects`. */
export function subjectRoutes(services: AccessServices | undefined): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/auth/v1/subjects',
      access: 'admin',
      tag,
      summary: 'Users, roles and groups that something was said of',
      query: Type.Object({ kind: Type.Optional(kinds) }),
      responses: { 200: { description: 'The subjects.', schema: Type.Array(subject) } },
      handler: ({ query: { kind }, caller }) =>
        required(services).users.subjects(kind === 'subject' ? undefined : kind, caller),
    }),
    ...permissionRoutes(services, '/auth/v1/users/:user', { read: { user: 'read' }, change: { user: 'admin' } }),
    ...permissionRoutes(services, '/auth/v1/subjects/:subject', { read: 'admin', change: 'admin' }),
    ...filterRoutes(services, '/auth/v1/users/:user', { user: 'read' }),
    ...filterRoutes(services, '/auth/v1/subjects/:subject', 'admin'),
  ];
}

function permissionRoutes(
  services: AccessServices | undefined,
  base: SubjectPath,
  access: { readonly read: RouteAccess; readonly change: RouteAccess },
): Route[] {
  const path = `${base}/permissions` as const;
  return [
    defineRoute({
      method: 'GET',
      path,
      access: access.read,
      tag,
      summary: 'Grants of a subject, without those of its roles',
      responses: { 200: { description: 'The grants.', schema: Type.Array(permission) } },
      handler: ({ params, caller }) => required(services).users.grantsOf(subjectOf(params), caller).map(permissionOf),
    }),
    defineRoute({
      method: 'POST',
      path,
      access: access.change,
      tag,
      summary: 'Grant something to a subject',
      body: { kind: 'json', schema: permission, bytesMax },
      responses: { 201: { description: 'Granted.', schema: message } },
      handler: async ({ params, body, caller }) => {
        await required(services).users.grant(subjectOf(params), grantOf(body), caller);
        return { message: 'the permission is granted' };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path,
      access: access.change,
      tag,
      summary: 'Take back all grants of a subject on a resource',
      query: Type.Object({
        resource: Type.String(),
        resourceType: Type.Optional(permission.properties.resource_type),
        resource_type: Type.Optional(permission.properties.resource_type),
      }),
      responses: { 204: { description: 'Taken back.' } },
      handler: async ({ params, query, caller }) => {
        await required(services).users.revoke(subjectOf(params), query.resource, typeIn(query), caller);
        return reply(204, undefined);
      },
    }),
  ];
}

/** The type of resource in either spelling: that of the reference, and the one that permissions have. */
function typeIn({
  resourceType,
  resource_type: other,
}: Partial<Record<'resourceType' | 'resource_type', Permission['resource_type']>>) {
  const given = resourceType ?? other;
  if (given !== undefined && (other ?? given) === given) return given;
  const why = given === undefined ? 'is missing' : 'and "resource_type" are two names for the same and differ';
  throw new ServiceError('invalid_request', `query parameter "resourceType" ${why}`);
}

function filterRoutes(services: AccessServices | undefined, base: SubjectPath, read: RouteAccess): Route[] {
  const list = `${base}/row-filters` as const;
  const path = `${list}/:table` as const;
  return [
    defineRoute({
      method: 'GET',
      path: list,
      access: read,
      tag,
      summary: 'Row filters of a subject, without those of its roles',
      responses: { 200: { description: 'The filters by table.', schema: Type.Array(rowFilterEntry) } },
      handler: ({ params, caller }) => required(services).users.rowFilters(subjectOf(params), caller),
    }),
    defineRoute({
      method: 'GET',
      path,
      access: read,
      tag,
      summary: 'The row filter of a subject for a table',
      responses: { 200: { description: 'The filter.', schema: rowFilterEntry } },
      handler: ({ params, caller }) => required(services).users.rowFilter(subjectOf(params), params.table, caller),
    }),
    defineRoute({
      method: 'PUT',
      path,
      access: 'admin',
      tag,
      summary: 'Set which documents of a table (`*` for every table) exist for a subject',
      body: { kind: 'json', schema: rowFilterNode, bytesMax },
      responses: { 200: { description: 'The filter.', schema: rowFilterEntry } },
      handler: ({ params, body, caller }) =>
        required(services).users.setRowFilter(subjectOf(params), params.table, body, caller),
    }),
    defineRoute({
      method: 'DELETE',
      path,
      access: 'admin',
      tag,
      summary: 'Remove the row filter of a subject for a table',
      responses: { 204: { description: 'Removed.' } },
      handler: async ({ params, caller }) => {
        await required(services).users.removeRowFilter(subjectOf(params), params.table, caller);
        return reply(204, undefined);
      },
    }),
  ];
}
