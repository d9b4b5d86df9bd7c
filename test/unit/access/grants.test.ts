import { describe, expect, test } from 'bun:test';
import type { AccessLevel, Grant } from '../../../src/access/grants.ts';
import {
  type Caller,
  everyone,
  type Principal,
  type RowFilters,
  requireAdmin,
  requireInference,
  requireTable,
  requireWholeTable,
  rowFiltersOf,
  seesTable,
} from '../../../src/access/principal.ts';

function callerWith(...grants: Grant[]): Caller {
  return callerOf({ kind: 'granted', name: 'reader', madeMs: 1, grants });
}

function callerOf(principal: Principal): Caller {
  return { principal, requestId: 'r', signal: new AbortController().signal, rowFilter: undefined };
}

function allows(check: () => void): boolean {
  try {
    check();
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'forbidden' });
    return false;
  }
}

const levels: readonly AccessLevel[] = ['read', 'write', 'admin'];

describe('grants for tables', () => {
  const cases: readonly (readonly [grant: Grant, allowed: readonly AccessLevel[], others: readonly AccessLevel[]])[] = [
    [{ resourceType: 'table', resource: 'books', level: 'read' }, ['read'], []],
    [{ resourceType: 'table', resource: 'books', level: 'write' }, ['write'], []],
    [{ resourceType: 'table', resource: 'books', level: 'admin' }, levels, []],
    [{ resourceType: 'table', resource: '*', level: 'read' }, ['read'], ['read']],
    [{ resourceType: '*', resource: '*', level: 'write' }, ['write'], ['write']],
    [{ resourceType: '*', resource: '*', level: 'admin' }, levels, levels],
    [{ resourceType: 'inference', resource: '*', level: 'admin' }, [], []],
    [{ resourceType: 'user', resource: 'books', level: 'admin' }, [], []],
  ];
  test.each(cases)('%j allows %j on its table and %j on others', (grant, allowed, others) => {
    const caller = callerWith(grant);
    expect(levels.filter((level) => allows(() => requireTable(caller, 'books', level)))).toEqual([...allowed]);
    expect(levels.filter((level) => allows(() => requireTable(caller, 'other', level)))).toEqual([...others]);
    expect([seesTable(caller, 'books'), seesTable(caller, 'other')]).toEqual([allowed.length > 0, others.length > 0]);
  });

  test('several grants add up', () => {
    const caller = callerWith(
      { resourceType: 'table', resource: 'books', level: 'read' },
      { resourceType: 'table', resource: '*', level: 'write' },
    );
    expect(levels.filter((level) => allows(() => requireTable(caller, 'books', level)))).toEqual(['read', 'write']);
  });
});

test('inference is allowed by its grant, a global read grant or an admin grant of any kind', () => {
  const allowed = (grant: Grant) =>
    (['read', 'write'] as const).filter((level) => allows(() => requireInference(callerWith(grant), level)));
  expect(allowed({ resourceType: 'inference', resource: '*', level: 'read' })).toEqual(['read']);
  expect(allowed({ resourceType: 'inference', resource: '*', level: 'write' })).toEqual(['write']);
  expect(allowed({ resourceType: '*', resource: '*', level: 'read' })).toEqual(['read']);
  expect(allowed({ resourceType: 'table', resource: 'books', level: 'admin' })).toEqual(['read']);
  expect(allowed({ resourceType: 'table', resource: '*', level: 'read' })).toEqual([]);
});

test('only a global admin grant makes an administrator', () => {
  const isAdmin = (grant: Grant) => allows(() => requireAdmin(callerWith(grant)));
  expect(isAdmin({ resourceType: '*', resource: '*', level: 'admin' })).toBe(true);
  expect(isAdmin({ resourceType: '*', resource: '*', level: 'write' })).toBe(false);
  expect(isAdmin({ resourceType: 'table', resource: '*', level: 'admin' })).toBe(false);
});

test('without authentication everyone may do everything', () => {
  const caller = callerOf(everyone);
  expect(levels.filter((level) => allows(() => requireTable(caller, 'books', level)))).toEqual([...levels]);
  expect(allows(() => requireAdmin(caller)) && allows(() => requireInference(caller, 'write'))).toBe(true);
});

describe('a row filter', () => {
  const filtered = (rowFilter: RowFilters) => ({ ...callerOf(everyone), rowFilter });

  test('leaves reads and writes of its tables, and takes their administration', () => {
    const caller = filtered({ books: { match_all: {} } });
    expect(levels.filter((level) => allows(() => requireTable(caller, 'books', level)))).toEqual(['read', 'write']);
    expect(levels.filter((level) => allows(() => requireTable(caller, 'plates', level)))).toEqual([...levels]);
    expect(allows(() => requireWholeTable(caller, 'books', 'explain'))).toBe(false);
    expect(allows(() => requireAdmin(caller))).toBe(false);
    const everywhere = filtered({ '*': { match_all: {} } });
    expect(levels.filter((level) => allows(() => requireTable(everywhere, 'new', level)))).toEqual(['read', 'write']);
  });

  test('of a table and of all tables must both match', () => {
    const [own, all, more] = [{ term: { a: 1 } }, { term: { b: 1 } }, { term: { c: 1 } }];
    const caller = filtered({ books: [own, more], '*': all });
    expect(rowFiltersOf(caller, 'books')).toEqual([own, more, all]);
    expect(rowFiltersOf(caller, 'plates')).toEqual([all]);
    expect(rowFiltersOf(filtered({ books: own }), 'toString')).toEqual([]);
    expect(rowFiltersOf(filtered({ books: [] }), 'books')).toEqual([{ match_none: {} }]);
  });
});
