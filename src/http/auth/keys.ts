import { Type } from '@sinclair/typebox';
import type { ApiKey } from '../../access/access-state.ts';
import { lifetimeWords, readLifetime } from '../../access/key-lifetime.ts';
import { limits } from '../../config/limits.ts';
import {
  type ApiKeyBody,
  apiKey,
  type CreatedKeyBody,
  createdKey,
  createKeyRequest,
} from '../../protocol/auth/access.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { type AccessServices, grantOf, permissionOf, required } from './access-services.ts';

const tag = 'Users and keys';

/** Keys of users. */
export function keyRoutes(services: AccessServices | undefined): Route[] {
  const path = '/auth/v1/users/:user/api-keys';
  return [
    defineRoute({
      method: 'GET',
      path,
      access: { user: 'read' },
      tag,
      summary: 'Keys of a user, without their secrets',
      responses: { 200: { description: 'The keys.', schema: Type.Array(apiKey) } },
      handler: ({ params, caller }) => required(services).keys.of(params.user, caller).map(renderKey),
    }),
    defineRoute({
      method: 'POST',
      path,
      access: { user: 'write' },
      tag,
      summary: 'Make a key; its secret is shown this once',
      body: { kind: 'json', schema: createKeyRequest, bytesMax: limits.smallBodyBytesMax },
      responses: { 201: { description: 'The key with its secret.', schema: createdKey } },
      handler: async ({ params, body, caller }): Promise<CreatedKeyBody> => {
        const request = {
          name: body.name,
          lifetimeMs: lifetimeOf(body.expires_in ?? undefined),
          permissions: body.permissions?.map(grantOf),
          rowFilter: body.row_filter ?? undefined,
        };
        const { key, secret } = await required(services).keys.create(params.user, request, caller);
        return { ...renderKey(key), key_secret: secret.secret, encoded: secret.encoded };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/auth/v1/users/:user/api-keys/:key',
      access: { user: 'write' },
      tag,
      summary: 'Revoke a key; its next request is refused',
      responses: { 204: { description: 'Revoked.' } },
      handler: async ({ params, caller }) => {
        await required(services).keys.revoke(params.key, params.user, caller);
        return reply(204, undefined);
      },
    }),
  ];
}

function lifetimeOf(expiresIn: string | undefined): number | undefined {
  if (expiresIn === undefined) return undefined;
  const lifetimeMs = readLifetime(expiresIn);
  if (lifetimeMs !== undefined) return lifetimeMs;
  throw new ServiceError('invalid_request', `member "expires_in" must be ${lifetimeWords}`);
}

function renderKey(key: ApiKey): ApiKeyBody {
  return {
    key_id: key.keyId,
    name: key.name,
    username: key.userName,
    permissions: key.permissions?.map(permissionOf) ?? null,
    row_filter: (key.rowFilter as ApiKeyBody['row_filter']) ?? null,
    created_at: new Date(key.createdMs).toISOString(),
    expires_at: key.expiresMs === undefined ? null : new Date(key.expiresMs).toISOString(),
  };
}
