import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  accessLevels,
  commonGrants,
  covers,
  type Grant,
  grantedTypes,
  includesGrant,
} from '../../../src/access/grants.ts';

const grant = fc.record({
  resourceType: fc.constantFrom(...grantedTypes),
  resource: fc.constantFrom('books', 'plates', '*'),
  level: fc.constantFrom(...accessLevels),
});
const grants = fc.array(grant, { maxLength: 4 });
const uses = (['table', 'user'] as const).flatMap((type) =>
  ['books', 'plates', 'new'].flatMap((resource) => accessLevels.map((level) => ({ type, resource, level }))),
);
const allowed = (held: readonly Grant[]) =>
  uses.map(({ type, resource, level }) => covers(held, type, resource, level));

describe('what a key has', () => {
  test('is exactly what its user and its own permissions both allow', () => {
    fc.assert(
      fc.property(grants, grants, (held, wanted) => {
        const both = allowed(held).map((isHeld, at) => isHeld && allowed(wanted)[at] === true);
        expect(allowed(commonGrants(held, wanted))).toEqual(both);
      }),
    );
  });

  test('may be asked for only where the user has all of it', () => {
    fc.assert(
      fc.property(grants, grant, (held, wanted) => {
        if (!includesGrant(held, wanted)) return;
        const lacking = allowed([wanted]).filter((isWanted, at) => isWanted && allowed(held)[at] !== true);
        expect(lacking).toEqual([]);
      }),
    );
  });

  test('models included, which an admin grant of any kind allows to use', () => {
    const held: Grant[] = [{ resourceType: 'table', resource: 'books', level: 'admin' }];
    const inference: Grant = { resourceType: 'inference', resource: '*', level: 'read' };
    expect(includesGrant(held, inference)).toBe(true);
    expect(commonGrants(held, [inference])).toEqual([inference]);
    expect(includesGrant(held, { ...inference, level: 'write' })).toBe(false);
  });
});
