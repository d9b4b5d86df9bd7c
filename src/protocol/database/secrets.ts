import { type Static, Type } from '@sinclair/typebox';

/** A secret as it is listed: never with its value. */
export const secretEntrySchema = Type.Object({
  key: Type.String(),
  status: Type.Union(
    [Type.Literal('configured_file'), Type.Literal('configured_env'), Type.Literal('configured_both')],
    { description: 'Whether the file of secrets, the environment, or both have a value; that of the file is used.' },
  ),
  env_var: Type.String({ description: 'The variable that may hold the value, where "secrets.variables" lists it.' }),
  hosts: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Hosts that the value may be sent to; all that may be called without it.',
    }),
  ),
  created_at: Type.Optional(
    Type.String({ description: 'RFC 3339; absent for what the environment has, or an editor has put into the file.' }),
  ),
  updated_at: Type.Optional(Type.String()),
});
export type SecretEntry = Static<typeof secretEntrySchema>;

export const secretListSchema = Type.Object({ secrets: Type.Array(secretEntrySchema) });

export const putSecretSchema = Type.Object({
  value: Type.String({ minLength: 1, maxLength: 65_536 }),
  hosts: Type.Optional(
    Type.Array(Type.String({ maxLength: 255 }), {
      maxItems: 64,
      description:
        'Hosts that the value may be sent to, such as `api.example.org`, `.example.org` or `localhost:8080`; `any` for all. A stored secret keeps its own without it.',
    }),
  ),
});
