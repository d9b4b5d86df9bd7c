import { type Static, Type } from '@sinclair/typebox';
import { documentedText, durationPattern } from '../documented-text.ts';

const resourceCharsMax = 255;
const metadataMembersMax = 64;
const permissionsMax = 1_000;
const filtersMax = 1_000;

/** One permission. `admin` implies the other two; `*` stands for every resource, or for every type. */
export const permission = Type.Object({
  resource: Type.String({ minLength: 1, maxLength: resourceCharsMax, description: 'A name, or `*` for all.' }),
  resource_type: Type.Union([
    Type.Literal('table'),
    Type.Literal('inference'),
    Type.Literal('user'),
    Type.Literal('*'),
  ]),
  type: Type.Union([Type.Literal('read'), Type.Literal('write'), Type.Literal('admin')]),
});
export type Permission = Static<typeof permission>;

export const permissions = Type.Array(permission, { maxItems: permissionsMax });

export const metadata = Type.Record(Type.String(), Type.Unknown(), {
  maxProperties: metadataMembersMax,
  description: 'Of your own; row filters may refer to it as `{"$auth": "metadata.NAME"}`.',
});

/** A query node; values may be `{"$auth": "username"}`, `"roles"` or `"metadata.NAME"`. */
export const rowFilterNode = Type.Record(Type.String(), Type.Unknown());

/** From names of tables, or `*`, to filters. */
export const rowFilterByTable = Type.Record(Type.String(), rowFilterNode, { maxProperties: filtersMax });

export const rowFilterEntry = Type.Object({ table: Type.String(), filter: rowFilterNode });
export type RowFilterEntry = Static<typeof rowFilterEntry>;

export const ownAccess = Type.Object({
  username: Type.String(),
  permissions: Type.Array(permission, { description: 'All that this credential allows.' }),
  roles: Type.Array(Type.String()),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  key_id: Type.Optional(Type.String({ description: 'The key that was given.' })),
});

export const userSummary = Type.Object({ username: Type.String() });

export const user = Type.Object({
  username: Type.String(),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  created_at: Type.String({ format: 'date-time' }),
});

export const createUserRequest = Type.Object({
  password: Type.String({ description: '8 to 256 bytes.' }),
  initial_policies: Type.Optional(permissions),
  metadata: Type.Optional(metadata),
});

export const passwordRequest = Type.Object({ new_password: Type.String({ description: '8 to 256 bytes.' }) });

export const roleRequest = Type.Object({
  role: Type.String({ description: 'The name of a role, or `group:NAME` for a group.' }),
});

export const createKeyRequest = Type.Object({
  name: Type.String({ minLength: 1, maxLength: resourceCharsMax }),
  expires_in: Type.Optional(
    Type.Union([documentedText(durationPattern, 'A duration such as `720h` or `30d`.'), Type.Null()]),
  ),
  permissions: Type.Optional(
    Type.Union([permissions, Type.Null()], { description: 'No more than its user has; all of that unless given.' }),
  ),
  row_filter: Type.Optional(Type.Union([rowFilterByTable, Type.Null()])),
});
export type CreateKeyRequest = Static<typeof createKeyRequest>;

export const apiKey = Type.Object({
  key_id: Type.String(),
  name: Type.String(),
  username: Type.String(),
  permissions: Type.Union([Type.Array(permission), Type.Null()]),
  row_filter: Type.Union([rowFilterByTable, Type.Null()]),
  created_at: Type.String({ format: 'date-time' }),
  expires_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()]),
});
export type ApiKeyBody = Static<typeof apiKey>;

/** The secret is shown this once. */
export const createdKey = Type.Intersect([
  apiKey,
  Type.Object({
    key_secret: Type.String(),
    encoded: Type.String({ description: 'What stands after `Bearer` or `ApiKey`.' }),
  }),
]);
export type CreatedKeyBody = Static<typeof createdKey>;

export const subject = Type.Object({
  subject: Type.String(),
  kind: Type.Union([Type.Literal('user'), Type.Literal('role'), Type.Literal('group')]),
});
export type SubjectBody = Static<typeof subject>;

export const message = Type.Object({ message: Type.String() });
