import type { SecretService } from '../../access/secrets/secret-service.ts';
import { limits } from '../../config/limits.ts';
import { putSecretSchema, secretEntrySchema, secretListSchema } from '../../protocol/database/secrets.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const tag = 'secrets';

/** Secrets by name. No answer has a value. */
export function secretRoutes(secrets: SecretService): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/secrets',
      access: 'admin',
      tag,
      summary: 'The names of all secrets',
      description: 'Those of the file, and variables of the environment that `secrets.variables` lists.',
      responses: { 200: { description: 'The secrets, by key', schema: secretListSchema } },
      handler: ({ caller }) => ({ secrets: secrets.list(caller) }),
    }),
    defineRoute({
      method: 'PUT',
      path: '/db/v1/secrets/:key',
      access: 'admin',
      tag,
      summary: 'Store a secret',
      description:
        'A credential refers to it as `${secret:KEY}`. What runs takes the new value with its next request. The value is in no answer.',
      body: { kind: 'json', schema: putSecretSchema, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: { description: 'The secret as it is listed', schema: secretEntrySchema } },
      handler: ({ params, body, caller }) => secrets.put(params.key, body, caller),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/secrets/:key',
      access: 'admin',
      tag,
      summary: 'Remove a secret from the file',
      responses: { 204: { description: 'The file has no such secret any more' } },
      handler({ params, caller }) {
        secrets.remove(params.key, caller);
        return reply(204, undefined);
      },
    }),
  ];
}
