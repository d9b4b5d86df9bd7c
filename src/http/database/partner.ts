import { limits } from '../../config/limits.ts';
import { isEntryName } from '../../config/named-sections/named-sections.ts';
import type { PartnerService } from '../../connections/partner/partner-service.ts';
import {
  authorizePartnerSchema,
  partnerAccountsSchema,
  partnerAttemptSchema,
  partnerAuthorizationSchema,
  partnerDisconnectSchema,
  partnerModelsSchema,
} from '../../protocol/database/partner.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const tag = 'connections';
const access = { inference: 'write' } as const;

/** The account that a user has with the partner, connected by a login at the partner. */
export function partnerRoutes(partner: PartnerService): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/db/v1/connections/partner/authorize',
      access,
      tag,
      summary: 'Begin a login at the partner',
      description:
        'The browser of the user opens `authorization_url`, on the machine of the server; the partner leads it back to a port of loopback. The attempt ends with that, or after ten minutes.',
      body: { kind: 'json', schema: authorizePartnerSchema, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: { description: 'The attempt', schema: partnerAuthorizationSchema } },
      handler({ body, caller }) {
        const { connection_id } = body;
        if (!isEntryName(connection_id)) {
          const form = 'letters and digits with single "-" or "_" between them, at most 64 characters';
          throw new ServiceError('invalid_request', `member "connection_id" has ${form}`);
        }
        const { id, authorizationUrl, expiresSeconds } = partner.authorize(connection_id, caller);
        return { attempt_id: id, authorization_url: authorizationUrl, expires_at: expiresSeconds };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/connections/partner/attempts/:attempt',
      access,
      tag,
      summary: 'How a login at the partner stands',
      responses: { 200: { description: 'The attempt', schema: partnerAttemptSchema } },
      handler({ params, caller }) {
        const { status, connectionId, error } = partner.attempt(params.attempt, caller);
        return { status, connection_id: connectionId, error };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/connections/partner/accounts',
      access,
      tag,
      summary: 'The accounts that are connected',
      responses: { 200: { description: 'The accounts', schema: partnerAccountsSchema } },
      handler: ({ caller }) => ({
        accounts: [...partner.accounts(caller)].map(([id, { email, label, planEnabled, tokens }]) => ({
          connection_id: id,
          email,
          label,
          connected: tokens !== undefined,
          plan_enabled: planEnabled,
        })),
      }),
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/connections/:connection/partner/models',
      access,
      tag,
      summary: 'The models that an account may use',
      responses: { 200: { description: 'The models', schema: partnerModelsSchema } },
      async handler({ params, caller }) {
        const models = await partner.models(params.connection, caller);
        return {
          object: 'list',
          data: models.map(({ id, ownedBy }) => ({ id, object: 'model' as const, owned_by: ownedBy })),
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/connections/:connection/partner/disconnect',
      access,
      tag,
      summary: 'Forget an account',
      description: 'Its tokens are gone here in any case. An account that is not there is forgotten already.',
      responses: { 200: { description: 'Whether its tokens are void', schema: partnerDisconnectSchema } },
      async handler({ params, caller }) {
        return { revocation_confirmed: await partner.disconnect(params.connection, caller) };
      },
    }),
  ];
}
