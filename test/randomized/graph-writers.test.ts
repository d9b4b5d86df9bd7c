import { expect, test } from 'bun:test';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { GraphTable } from '../support/graph/graph-table.ts';
import { startTestServer } from '../support/test-server.ts';

const seed = runSeed();
const rounds = 25;

/**
 * Documents are written with all of their edges at once, each write with a mark of its own as the type; so whatever moment an
 * answer is of, the edges of a node are of one write. A document that is deleted is never written again.
 */
test(`under concurrent writes an answer is of one moment, and has no edge of a deleted document (seed ${seed})`, async () => {
  await using server = await startTestServer();
  for (const shards of [1, 3, 20]) {
    const table = await GraphTable.create(server, `t${shards}`, { shards });
    const random = new SeededRandom(seed);
    const sources = ['!s', 'k', '~s'];
    const targets = Array.from({ length: 30 }, (_, at) => `${String.fromCharCode(33 + at * 3)}t`);
    const alive = new Set(targets);
    const deleted = new Set<string>();
    await table.batch({ inserts: Object.fromEntries([...sources, ...targets].map((key) => [key, {}])) });
    const turns = new Map(sources.map((source) => [source, 0]));
    let isOver = false;
    let looks = 0;
    const write = async (source: string) => {
      for (let mark = 0; !isOver; mark += 1) {
        const edges = [...alive].map((target) => ({ target }));
        const inserts = { [source]: { _edges: { g: { [`w${mark}`]: edges } } } };
        expect(await table.batch({ inserts })).toMatchObject({ status: 201 });
        turns.set(source, mark + 1);
      }
    };
    const remove = async () => {
      for (let round = 0; round < rounds; round += 1) {
        const key = random.pick([...alive]);
        alive.delete(key);
        // A write that has named it is answered before it goes.
        const before = new Map(turns);
        await until(async () => sources.every((source) => (turns.get(source) ?? 0) > (before.get(source) ?? 0)));
        expect(await table.batch({ deletes: [key] })).toMatchObject({ status: 201 });
        deleted.add(key);
      }
      isOver = true;
    };
    const look = async (source: string) => {
      while (!isOver) {
        const gone = new Set(deleted);
        const edges = await table.edges(source, '&limit=1000');
        expect(new Set(edges.map(({ type }) => type)).size).toBeLessThanOrEqual(1);
        const { results } = await table.traverse({ start: source, max_depth: 1 });
        const shown = [...edges.map(({ target }) => target), ...results.map(({ key }) => key)];
        expect(shown.filter((key) => gone.has(key))).toEqual([]);
        looks += 1;
      }
    };
    await Promise.all([remove(), ...sources.flatMap((source) => [write(source), look(source)])]);
    expect(looks).toBeGreaterThan(0);
    for (const key of deleted) expect(await table.arrows(key, '&direction=in')).toEqual([]);
  }
}, 120_000);
