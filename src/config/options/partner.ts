import { credential } from '../named-sections/credential-kinds.ts';
import { option, optional } from '../option.ts';
import { integer, list, text, webAddress } from '../value-kind.ts';

/** The OAuth application of the partner. */
export const partnerOptions = {
  partnerAuthorizationUrl: optional({
    key: 'partner.authorization_url',
    kind: webAddress(),
    help: 'Where users log in at the partner (OAuth 2, authorization code with PKCE).',
    reloadable: true,
  }),
  partnerTokenUrl: optional({
    key: 'partner.token_url',
    kind: webAddress(),
    help: 'Where the partner gives tokens.',
    reloadable: true,
  }),
  partnerRevocationUrl: optional({
    key: 'partner.revocation_url',
    kind: webAddress(),
    help: 'Where the partner takes tokens back (RFC 7009).',
    reloadable: true,
  }),
  partnerAccountUrl: optional({
    key: 'partner.account_url',
    kind: webAddress(),
    help: 'Where the partner tells whose account it is: `email`, `label` or `name`, `plan_enabled`.',
    reloadable: true,
  }),
  partnerModelsUrl: optional({
    key: 'partner.models_url',
    kind: webAddress(),
    help: 'Where the partner lists the models of an account, as the OpenAI interface does.',
    reloadable: true,
  }),
  partnerClientId: optional({
    key: 'partner.client_id',
    kind: text(),
    help: 'What this server is called at the partner.',
    reloadable: true,
  }),
  partnerClientSecret: optional({
    key: 'partner.client_secret',
    kind: credential(),
    secret: true,
    help: 'Its secret, where the partner asks for one.',
    reloadable: true,
  }),
  partnerScopes: option({
    key: 'partner.scopes',
    kind: list('scope'),
    default: [],
    help: 'What logins ask the partner for.',
    reloadable: true,
  }),
  partnerCallbackPort: option({
    key: 'partner.callback_port',
    kind: integer(0, 65_535),
    default: 0,
    help: 'Port of 127.0.0.1 that the partner sends browsers back to, at `/callback`; 0 takes a free one.',
    reloadable: true,
  }),
} as const;
