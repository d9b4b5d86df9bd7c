/** What a grant allows. `admin` implies the other two. */
export type AccessLevel = 'read' | 'write' | 'admin';

/** Kinds of things that are granted. */
type ResourceType = 'table' | 'inference' | 'user';

export interface Grant {
  readonly resourceType: ResourceType | '*';
  /** The name of one resource, or `*` for all of its type. */
  readonly resource: string;
  readonly level: AccessLevel;
}

/** Whether some grant covers this use of a resource; `undefined` asks for any use at all. */
export function covers(
  grants: readonly Grant[],
  resourceType: ResourceType,
  resource: string,
  level: AccessLevel | undefined,
): boolean {
  return grants.some(
    (grant) =>
      (grant.resourceType === '*' || grant.resourceType === resourceType) &&
      (grant.resource === '*' || grant.resource === resource) &&
      (level === undefined || grant.level === level || grant.level === 'admin'),
  );
}

/** Whether the grants make a global administrator. */
export function coversEverything(grants: readonly Grant[]): boolean {
  return grants.some(
    ({ resourceType, resource, level }) => resourceType === '*' && resource === '*' && level === 'admin',
  );
}

/** Models may be used with the grant for it; a global read grant, or an admin grant of any kind, also suffices. */
export function coversInference(grants: readonly Grant[], level: 'read' | 'write'): boolean {
  if (covers(grants, 'inference', '*', level)) return true;
  return level === 'read' && grants.some((grant) => grant.level === 'admin');
}
