import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { message, roleRequest } from '../../protocol/auth/access.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import type { RouteAccess } from '../routing/route-access.ts';
import { type AccessServices, required, type SubjectPath, subjectOf } from './access-services.ts';

const tag = 'Users and keys';

/** Roles and groups of users, and of other roles and groups. */
export function roleRoutes(services: AccessServices | undefined): Route[] {
  return [
    ...rolesBelow(services, '/auth/v1/users/:user', { user: 'read' }),
    ...rolesBelow(services, '/auth/v1/subjects/:subject', 'admin'),
  ];
}

function rolesBelow(services: AccessServices | undefined, base: SubjectPath, read: RouteAccess): Route[] {
  const path = `${base}/roles` as const;
  return [
    defineRoute({
      method: 'GET',
      path,
      access: read,
      tag,
      summary: 'Roles and groups that a subject was given, without those of its roles',
      responses: { 200: { description: 'Their names.', schema: Type.Array(Type.String()) } },
      handler: ({ params, caller }) => required(services).users.rolesOf(subjectOf(params), caller),
    }),
    defineRoute({
      method: 'POST',
      path,
      access: 'admin',
      tag,
      summary: 'Give a subject a role, or put it into a group',
      body: { kind: 'json', schema: roleRequest, bytesMax: limits.smallBodyBytesMax },
      responses: { 201: { description: 'Given.', schema: message } },
      handler: async ({ params, body, caller }) => {
        await required(services).users.addRole(subjectOf(params), body.role, caller);
        return { message: 'the role is given' };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path,
      access: 'admin',
      tag,
      summary: 'Take a role from a subject',
      query: Type.Object({ role: Type.String() }),
      responses: { 204: { description: 'Done.' } },
      handler: async ({ params, query, caller }) => {
        await required(services).users.removeRole(subjectOf(params), query.role, caller);
        return reply(204, undefined);
      },
    }),
  ];
}
