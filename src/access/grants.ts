/** The level of a grant. `admin` implies the other two. */
export const accessLevels = ['read', 'write', 'admin'] as const;
export type AccessLevel = (typeof accessLevels)[number];

/** Kinds of things that are granted; `*` stands for all of them. */
export const grantedTypes = ['table', 'inference', 'user', '*'] as const;
type ResourceType = Exclude<(typeof grantedTypes)[number], '*'>;

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
  // Every request asks this several times: a closure for each would cost as much as the answer.
  for (const grant of grants) {
    if (grant.resourceType !== '*' && grant.resourceType !== resourceType) continue;
    if (grant.resource !== '*' && grant.resource !== resource) continue;
    if (level === undefined || grant.level === level || grant.level === 'admin') return true;
  }
  return false;
}

/** Whether the grants make a global administrator. */
export function coversEverything(grants: readonly Grant[]): boolean {
  return grants.some(
    ({ resourceType, resource, level }) => resourceType === '*' && resource === '*' && level === 'admin',
  );
}

/**
 * Models may be used (`read`) or managed (`write`) with the grant for all, or for the one named; a global read grant,
 * or an admin grant of anything but a model, also suffices.
 */
export function coversInference(grants: readonly Grant[], level: 'read' | 'write', model = '*'): boolean {
  if (covers(grants, 'inference', model, level)) return true;
  return level === 'read' && grants.some((grant) => grant.level === 'admin' && !namesModel(grant));
}

/** Whether some model may be used (`read`) or managed (`write`), be it one alone. */
export function coversSomeModel(grants: readonly Grant[], level: 'read' | 'write'): boolean {
  if (coversInference(grants, level)) return true;
  return grants.some((grant) => namesModel(grant) && (grant.level === level || grant.level === 'admin'));
}

function namesModel({ resourceType, resource }: Grant): boolean {
  return resourceType === 'inference' && resource !== '*';
}

/** Whether `held` allows everything that `wanted` does. */
export function includesGrant(held: readonly Grant[], wanted: Grant): boolean {
  if (held.some((grant) => isWithin(wanted, grant))) return true;
  return wanted.resourceType === 'inference' && wanted.level === 'read' && coversInference(held, 'read');
}

/** The grants that both lists allow: of `wanted`, no more than `held` has. */
export function commonGrants(held: readonly Grant[], wanted: readonly Grant[]): Grant[] {
  // Models may be used with grants that do not name them.
  const all: Grant[] = coversInference(held, 'read')
    ? [...held, { resourceType: 'inference', resource: '*', level: 'read' }]
    : [...held];
  return all.flatMap((left) => wanted.flatMap((right) => commonGrant(left, right) ?? []));
}

function isWithin(wanted: Grant, held: Grant): boolean {
  return (
    (held.resourceType === '*' || held.resourceType === wanted.resourceType) &&
    (held.resource === '*' || held.resource === wanted.resource) &&
    (held.level === 'admin' || held.level === wanted.level)
  );
}

function commonGrant(left: Grant, right: Grant): Grant | undefined {
  const resourceType = narrower(left.resourceType, right.resourceType, '*');
  const resource = narrower(left.resource, right.resource, '*');
  const level = narrower(left.level, right.level, 'admin');
  return resourceType && resource && level ? { resourceType, resource, level } : undefined;
}

/** Of two words of which `all` means every one, the other one; undefined where they exclude each other. */
function narrower<Word extends string>(left: Word, right: Word, all: Word): Word | undefined {
  if (left === all) return right;
  return right === all || left === right ? left : undefined;
}
