import { describe, expect, test } from 'bun:test';
import { type CursorScope, CursorSeal } from '../../../src/query/execution/page-cursor.ts';

const cursors = new CursorSeal(new Uint8Array(32).fill(7));
const scope: CursorScope = { table: 't', sort: [{ field: 'n', desc: false }] as CursorScope['sort'] };
const at = { position: 'p1', key: 'a' };
const values = [1];
const sealed = cursors.seal(scope, values, at);

describe('a cursor', () => {
  test('opens under the scope and the values that it was sealed with', () => {
    expect(cursors.open(scope, { values, sealed, before: false })).toEqual({ ...at, before: false });
  });

  const altered: readonly (readonly [what: string, sealed: string])[] = [
    ['a character before it', `!${sealed}`],
    ['a character within it', `${sealed.slice(0, 8)} ${sealed.slice(8)}`],
    ['characters behind it', `${sealed}!!`],
    ['its end cut off', sealed.slice(0, -2)],
    ['nothing of it', ''],
  ];
  test.each(altered)('with %s is refused', (_what, text) => {
    expect(() => cursors.open(scope, { values, sealed: text, before: false })).toThrow('search_after');
  });

  test('of another table, order or value is refused', () => {
    const others: [CursorScope, number[]][] = [
      [{ ...scope, table: 'u' }, values],
      [{ ...scope, sort: [] }, values],
      [scope, [2]],
    ];
    for (const [other, given] of others) {
      expect(() => cursors.open(other, { values: given, sealed, before: true })).toThrow('search_before');
    }
  });
});
