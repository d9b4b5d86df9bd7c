import { Type } from '@sinclair/typebox';

export const authorizePartnerSchema = Type.Object({
  connection_id: Type.String({
    description: 'Name of the account: letters and digits with single `-` or `_` between.',
  }),
});

export const partnerAuthorizationSchema = Type.Object({
  attempt_id: Type.String(),
  authorization_url: Type.String({ description: 'Where the browser of the user begins.' }),
  expires_at: Type.Integer({ description: 'Seconds since 1970.' }),
});

export const partnerAttemptSchema = Type.Object({
  status: Type.Union([
    Type.Literal('pending'),
    Type.Literal('completed'),
    Type.Literal('failed'),
    Type.Literal('expired'),
  ]),
  connection_id: Type.String(),
  error: Type.String({ description: 'Why it failed; empty otherwise.' }),
});

export const partnerAccountsSchema = Type.Object({
  accounts: Type.Array(
    Type.Object({
      connection_id: Type.String(),
      email: Type.String(),
      label: Type.String(),
      connected: Type.Boolean({ description: 'False once the partner refuses the login.' }),
      plan_enabled: Type.Boolean(),
    }),
  ),
});

export const partnerModelsSchema = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(Type.Object({ id: Type.String(), object: Type.Literal('model'), owned_by: Type.String() })),
});

export const partnerDisconnectSchema = Type.Object({
  revocation_confirmed: Type.Boolean({ description: 'Whether the partner has said that its tokens are void.' }),
});
