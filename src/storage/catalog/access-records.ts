/** A user as the catalog holds it. */
export interface UserRecord {
  name: string;
  /** As `Bun.password` writes it; null for a user that has only keys. */
  passwordHash: string | null;
  /** JSON object. */
  metadata: string;
  /** Milliseconds since 1970. */
  createdMs: number;
}

/** Something that a subject (a user, `role:NAME` or `group:NAME`) may do. */
export interface GrantRecord {
  subject: string;
  resourceType: string;
  resource: string;
  level: string;
}

/** A user has a role, or is in a group. */
export interface MembershipRecord {
  userName: string;
  /** `role:NAME` or `group:NAME` */
  subject: string;
}

export interface ApiKeyRecord {
  keyId: string;
  /** The name that people call it by. */
  name: string;
  userName: string;
  /** 32 bytes; the secret itself is nowhere. */
  secretSha256: Uint8Array;
  /** JSON array of permissions; null for all that the user has. */
  permissions: string | null;
  /** JSON object from tables to filters; null for none. */
  rowFilter: string | null;
  createdMs: number;
  /** Null for a key that stays valid. */
  expiresMs: number | null;
}

/** Which documents of a table exist for a subject. */
export interface RowFilterRecord {
  subject: string;
  /** `*` for every table. */
  tableName: string;
  /** JSON of a query node. */
  filter: string;
}

/** All that the catalog holds of who may do what. */
export interface AccessRows {
  users: UserRecord[];
  grants: GrantRecord[];
  memberships: MembershipRecord[];
  apiKeys: ApiKeyRecord[];
  rowFilters: RowFilterRecord[];
}

/** One transaction: removals, then what is put in place. What is removed need not be there. */
export interface AccessChange {
  remove?: {
    users?: readonly string[];
    grants?: readonly GrantRecord[];
    memberships?: readonly MembershipRecord[];
    apiKeys?: readonly string[];
    rowFilters?: readonly Pick<RowFilterRecord, 'subject' | 'tableName'>[];
  };
  put?: { readonly [Name in keyof AccessRows]?: Readonly<AccessRows[Name]> };
}
