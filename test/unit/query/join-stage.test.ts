import { expect, test } from 'bun:test';
import { hitOfRow } from '../../../src/query/execution/hydrate.ts';
import type { JoinRequest } from '../../../src/query/join/join-request.ts';
import { JoinStage } from '../../../src/query/join/join-stage.ts';
import type { JoinedRow, RightRow } from '../../../src/query/join/joined-row.ts';
import type { RightSide } from '../../../src/query/join/right-side.ts';

function rightSide(rows: RightRow[], more: Partial<RightSide> = {}): RightSide {
  return {
    rows: rows.length,
    few: async () => undefined,
    all: async () => rows,
    byKeys: () => undefined,
    byValues: () => undefined,
    isCurrent: true,
    [Symbol.dispose]: () => {},
    ...more,
  };
}

function joinOf(more: Partial<JoinRequest>): JoinRequest {
  return {
    rightTable: 'r',
    type: 'inner',
    left: { join: undefined, path: 'v' },
    rightField: 'v',
    operator: 'eq',
    filter: undefined,
    keyPrefix: undefined,
    limit: undefined,
    fields: undefined,
    hint: undefined,
    ...more,
  };
}

async function* oneBatch(rows: object[]): AsyncGenerator<JoinedRow[]> {
  yield rows.map((row, at) => ({ hit: hitOfRow({ key: `l${at}`, text: JSON.stringify(row) }, 1), rights: [] }));
}

function rightRows(rows: object[]): RightRow[] {
  return rows.map((row, at) => ({ key: `r${at}`, text: JSON.stringify(row) }));
}

const same = (count: number) => Array.from({ length: count }, () => ({ v: 1 }));

test('others have their turn between the many rows of one hit, and nothing more is joined once a turn fails', async () => {
  let turns = 0;
  const stage = new JoinStage(joinOf({}), rightSide(rightRows(same(10_000))), {
    position: 0,
    async turn() {
      turns += 1;
      if (turns === 5) throw new Error('nobody waits');
    },
  });
  let rows = 0;
  const joined = async () => {
    for await (const batch of stage.run(oneBatch(same(100)), () => true)) rows += batch.length;
  };
  await expect(joined()).rejects.toThrow('nobody waits');
  expect(rows).toBeLessThan(20_000);
});

test('rows of the right side are without a hit only where all hits were seen', async () => {
  const keysOf = async (isSeen: boolean) => {
    const right = rightSide(rightRows([{ v: 1 }, { v: 2 }]));
    const stage = new JoinStage(joinOf({ type: 'right' }), right, { position: 0, turn: async () => {} });
    const keys: (string | undefined)[] = [];
    for await (const batch of stage.run(oneBatch([{ v: 1 }]), () => isSeen)) {
      keys.push(...batch.map(({ rights }) => rights[0]?.key));
    }
    return keys;
  };
  expect(await keysOf(true)).toEqual(['r0', 'r1']);
  expect(await keysOf(false)).toEqual(['r0']);
});

test('every pair of values counts among those that a join compares, not every pair of rows', async () => {
  const long = { v: Array.from({ length: 5_000 }, (_, at) => at) };
  const later = { v: Array.from({ length: 5_000 }, (_, at) => at + 5_000) };
  const stage = new JoinStage(joinOf({ operator: 'gt' }), rightSide(rightRows([later])), {
    position: 0,
    turn: async () => {},
  });
  const joined = async () => {
    for await (const _ of stage.run(oneBatch([long]), () => true));
  };
  await expect(joined()).rejects.toMatchObject({ code: 'limit_exceeded' });
});

test('values are looked up, however many, where the rows of the right side are more than may be held', async () => {
  const found = rightRows([{ v: 7 }]);
  const all = () => Promise.reject(new Error('too many'));
  const right = rightSide(found, { rows: 200_000, all, byValues: async () => found });
  const stage = new JoinStage(joinOf({}), right, { position: 0, turn: async () => {} });
  const keys: (string | undefined)[] = [];
  const many = { v: Array.from({ length: 100_000 }, (_, at) => at) };
  for await (const batch of stage.run(oneBatch([many]), () => true)) {
    keys.push(...batch.map(({ rights }) => rights[0]?.key));
  }
  expect(keys).toEqual(['r0']);
});
