import { expect, test } from 'bun:test';
import { type StagedKey, StagedWrites } from '../../../src/tables/transactions/staged-writes.ts';

const text = (staged: StagedKey | undefined) =>
  staged && {
    base: staged.base ? Buffer.from(staged.base).toString() : staged.base,
    transforms: staged.transforms.map(({ operations }) => Buffer.from(operations).toString()),
  };
const put = (writes: StagedWrites, key: string, body: string) =>
  writes.stage({ table: 't', key, change: { base: Buffer.from(body) } });
const remove = (writes: StagedWrites, key: string) => writes.stage({ table: 't', key, change: { base: null } });
const transform = (writes: StagedWrites, key: string, operations: string) =>
  writes.stage({ table: 't', key, change: { transform: { operations: Buffer.from(operations), upsert: false } } });

test('operations on a key coalesce: a put or a delete replaces, a transform follows', () => {
  const writes = new StagedWrites();
  transform(writes, 'a', '[1]');
  transform(writes, 'a', '[2]');
  expect(text(writes.of('t', 'a'))).toEqual({ base: undefined, transforms: ['[1]', '[2]'] });
  put(writes, 'a', '{}');
  transform(writes, 'a', '[3]');
  expect(text(writes.of('t', 'a'))).toEqual({ base: '{}', transforms: ['[3]'] });
  remove(writes, 'a');
  expect(text(writes.of('t', 'a'))).toEqual({ base: null, transforms: [] });
  expect(writes.size.operations).toBe(1);
});

test('a put behind a delete is a new document, and one behind a put keeps the vectors and edges that it does not name', () => {
  const writes = new StagedWrites();
  const first = '{"n":1.0,"_embeddings":{"v":[1],"w":[2]},"_edges":{"g":{"t":[]}}}';
  const second = '{"n":2.0,"_embeddings":{"w":null,"x":[3]}}';
  const both = '{"n":2.0,"_embeddings":{"v":[1],"w":null,"x":[3]},"_edges":{"g":{"t":[]}}}';
  for (const isApart of [false, true]) {
    const key = String(isApart);
    remove(writes, key);
    put(writes, key, '{"n":0}');
    expect(writes.of('t', key)?.isNew).toBe(true);
    if (isApart) writes.mark();
    put(writes, key, first);
    if (isApart) writes.mark();
    put(writes, key, second);
    expect(text(writes.of('t', key))).toEqual({ base: both, transforms: [] });
    expect(writes.of('t', key)?.isNew).toBe(true);
    if (isApart) writes.mark();
    remove(writes, key);
    expect(writes.of('t', key)).toMatchObject({ base: null, isNew: false, transforms: [] });
  }
});

test('what is replaced gives its memory back', () => {
  const writes = new StagedWrites();
  put(writes, 'a', 'x'.repeat(1_000));
  const { bytes } = writes.size;
  for (let round = 0; round < 10; round += 1) put(writes, 'a', 'x'.repeat(1_000));
  expect(writes.size).toEqual({ operations: 1, bytes });
});

test('a rollback brings back what a savepoint saw, and moves later savepoints to the same place', () => {
  const writes = new StagedWrites();
  put(writes, 'a', '1');
  const first = writes.mark();
  transform(writes, 'a', '[1]');
  const second = writes.mark();
  put(writes, 'a', '2');
  put(writes, 'b', '2');
  writes.rollback(second);
  expect(text(writes.of('t', 'a'))).toEqual({ base: '1', transforms: ['[1]'] });
  expect(writes.of('t', 'b')).toBeUndefined();
  writes.rollback(first);
  expect(text(writes.of('t', 'a'))).toEqual({ base: '1', transforms: [] });
  expect(writes.size.operations).toBe(1);
});

test('random operations with savepoints equal a log that is cut and folded', () => {
  const seed = 20_261_122;
  let state = seed;
  const random = (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  const writes = new StagedWrites();
  let log: { key: string; op: string }[] = [];
  let marks: { mark: number; length: number }[] = [];
  for (let step = 0; step < 2_000; step += 1) {
    const key = `k${random(5)}`;
    const choice = random(10);
    if (choice === 0 && marks.length < 20) marks.push({ mark: writes.mark(), length: log.length });
    else if (choice === 1 && marks.length > 0) {
      const { mark, length } = marks[random(marks.length)] as { mark: number; length: number };
      writes.rollback(mark);
      log = log.slice(0, length);
      marks = marks.map((each) => (each.mark > mark ? { mark, length } : each));
    } else {
      const op = choice < 4 ? 'delete' : choice < 7 ? `put ${step}` : `transform ${step}`;
      log.push({ key, op });
      if (op === 'delete') remove(writes, key);
      else if (op.startsWith('put')) put(writes, key, op);
      else transform(writes, key, op);
    }
    const expected = new Map<string, { base: string | null | undefined; transforms: string[] }>();
    for (const { key: name, op: done } of log) {
      const before = expected.get(name);
      if (done === 'delete') expected.set(name, { base: null, transforms: [] });
      else if (done.startsWith('put')) expected.set(name, { base: done, transforms: [] });
      else expected.set(name, { base: before?.base, transforms: [...(before?.transforms ?? []), done] });
    }
    const staged = [...(writes.all().get('t') ?? [])].map(([name, each]) => [name, text(each)] as const);
    expect(Object.fromEntries(staged), `seed ${seed}, step ${step}`).toEqual(Object.fromEntries(expected));
  }
});
