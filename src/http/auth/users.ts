import { Type } from '@sinclair/typebox';
import type { User } from '../../access/access-state.ts';
import { limits } from '../../config/limits.ts';
import { assert } from '../../lib/assert.ts';
import {
  createUserRequest,
  message,
  ownAccess,
  passwordRequest,
  user,
  userSummary,
} from '../../protocol/auth/access.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { type AccessServices, grantOf, permissionOf, required } from './access-services.ts';

const tag = 'Users and keys';
const bytesMax = limits.smallBodyBytesMax;
const done = { 204: { description: 'Done.' } } as const;

/** Users and their passwords. */
export function userRoutes(services: AccessServices | undefined): Route[] {
  return [meRoute(services), ...usersRoutes(services)];
}

function meRoute(services: AccessServices | undefined): Route {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/me',
    access: 'authenticated',
    tag,
    summary: 'By whom this request is made, and all that it may do',
    responses: { 200: { description: 'The caller.', schema: ownAccess } },
    handler({ caller }) {
      const { users } = required(services);
      const { principal, keyId } = caller;
      assert(principal.kind === 'granted', 'with authentication on every caller was identified');
      const { user, roles } = users.self(caller);
      return {
        username: user.name,
        permissions: principal.grants.map(permissionOf),
        roles: [...roles],
        metadata: user.metadata,
        ...(keyId === undefined ? {} : { key_id: keyId }),
      };
    },
  });
}

function usersRoutes(services: AccessServices | undefined): Route[] {
  const path = '/auth/v1/users/:user';
  return [
    defineRoute({
      method: 'GET',
      path: '/auth/v1/users',
      access: 'authenticated',
      tag,
      summary: 'Users that the caller may see',
      responses: { 200: { description: 'Their names.', schema: Type.Array(userSummary) } },
      handler: ({ caller }) =>
        required(services)
          .users.list(caller)
          .map(({ name }) => ({ username: name })),
    }),
    defineRoute({
      method: 'POST',
      path,
      access: { user: 'admin' },
      tag,
      summary: 'Make a user',
      body: { kind: 'json', schema: createUserRequest, bytesMax },
      responses: { 201: { description: 'The user.', schema: user } },
      handler: async ({ params, body, caller }) => {
        const grants = (body.initial_policies ?? []).map(grantOf);
        const given = { password: body.password, grants, metadata: body.metadata ?? {} };
        return renderUser(await required(services).users.create(params.user, given, caller));
      },
    }),
    defineRoute({
      method: 'GET',
      path,
      access: { user: 'read' },
      tag,
      summary: 'Get a user',
      responses: { 200: { description: 'The user.', schema: user } },
      handler: ({ params, caller }) => renderUser(required(services).users.get(params.user, caller)),
    }),
    defineRoute({
      method: 'DELETE',
      path,
      access: { user: 'admin' },
      tag,
      summary: 'Remove a user with its grants and keys',
      responses: done,
      handler: async ({ params, caller }) => {
        await required(services).users.remove(params.user, caller);
        return reply(204, undefined);
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/auth/v1/users/:user/password',
      access: { user: 'write' },
      tag,
      summary: 'Set the password of a user',
      body: { kind: 'json', schema: passwordRequest, bytesMax },
      responses: { 200: { description: 'Set.', schema: message } },
      handler: async ({ params, body, caller }) => {
        await required(services).users.setPassword(params.user, body.new_password, caller);
        return { message: 'the password is set' };
      },
    }),
  ];
}

/** Without the hash of the password: nobody has a use for it but a thief. */
function renderUser({ name, metadata, createdMs }: User) {
  return { username: name, metadata, created_at: new Date(createdMs).toISOString() };
}
