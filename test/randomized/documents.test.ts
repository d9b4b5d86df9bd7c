import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { compareKeys } from '../../src/lib/key-order.ts';
import { ChildServer } from '../support/fault/child-server.ts';
import { runSeed } from '../support/fault/seeded-random.ts';
import { type Batch, type JsonDocument, WireClient, withoutServerMembers } from '../support/fault/wire-client.ts';

/** Applies one step to the server and, by the interface's promise, to a plain map. */
type Step =
  | { do: 'batch'; batch: { inserts: [string, JsonDocument][]; deletes: string[]; incremented: string[] } }
  | { do: 'refused batch'; key: string; document: JsonDocument }
  | { do: 'merge'; after: string; records: [string, JsonDocument][] }
  | { do: 'commit'; key: string; truthful: boolean; document: JsonDocument }
  | { do: 'lookup'; key: string }
  | { do: 'scan'; from: string; to: string }
  | { do: 'search'; word: string }
  | { do: 'schema'; types: string[] }
  | { do: 'recreate' }
  | { do: 'reopen' }
  | { do: 'crash' };

const words = ['amber', 'birch', 'cedar'];
/** Keys of all three ranges, of neighbouring code units, and such as paths and queries may stumble over. */
const keys = ['!a', 'B', 'M/x', 'a b', 'a%2Fb', 'é', '\u{1F600}', '\uffee', '~', '~~', '中'];

const key = fc.constantFrom(...keys);
const scalar = fc.oneof(
  fc.integer({ min: -1_000, max: 1_000 }),
  fc.string({ maxLength: 8 }),
  fc.boolean(),
  fc.constant(null),
);
const body: fc.Arbitrary<JsonDocument> = fc
  .record({
    word: fc.constantFrom(...words),
    n: fc.integer({ min: 0, max: 9 }),
    odd: fc.dictionary(fc.constantFrom('a', 'b.c', '__proto__', 'constructor', 'ü'), scalar, { maxKeys: 3 }),
  })
  .map((made) => JSON.parse(JSON.stringify(made)) as JsonDocument);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('batch' as const),
      batch: fc.record({
        inserts: fc.array(fc.tuple(key, body), { maxLength: 4 }),
        deletes: fc.uniqueArray(key, { maxLength: 2 }),
        incremented: fc.array(key, { maxLength: 3 }),
      }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refused batch' as const), key, document: body }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('merge' as const),
      after: key,
      records: fc.array(fc.tuple(key, body), { maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('commit' as const), key, truthful: fc.boolean(), document: body }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lookup' as const), key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('scan' as const), from: key, to: key }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('search' as const), word: fc.constantFrom(...words) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('schema' as const),
      types: fc.constantFrom<string[]>(['text'], ['text', 'keyword'], ['text', 'search_as_you_type']),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('recreate' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('crash' as const) }) },
);

/** A server and the map that it must equal. */
class Twin implements AsyncDisposable {
  readonly #dataDir: string;
  readonly #directory: string;
  #server: ChildServer;
  readonly #map = new Map<string, JsonDocument>();

  private constructor(directory: string, dataDir: string, server: ChildServer) {
    this.#directory = directory;
    this.#dataDir = dataDir;
    this.#server = server;
  }

  static async start(): Promise<Twin> {
    const directory = mkdtempSync(join(tmpdir(), 'sundew-model-'));
    const dataDir = join(directory, 'data');
    const server = await ChildServer.start({ dataDir });
    await new WireClient(server.url).createTable('t', { num_shards: 3 });
    return new Twin(directory, dataDir, server);
  }

  async take(step: Step): Promise<void> {
    const wire = new WireClient(this.#server.url);
    switch (step.do) {
      case 'batch':
        return this.#batch(wire, step.batch);
      case 'refused batch': {
        const answer = await wire.batch('t', { inserts: { [step.key]: step.document, '': step.document } });
        return expect(answer.status).toBe(400);
      }
      case 'merge':
        return this.#merge(wire, step.after, step.records);
      case 'commit':
        return this.#commit(wire, step);
      case 'lookup': {
        const found = await wire.lookup('t', step.key);
        return expect(found && withoutServerMembers(found.document)).toEqual(this.#map.get(step.key));
      }
      case 'scan': {
        const found = await wire.scan('t', { from: step.from, to: step.to });
        const wanted = this.#sorted().filter(([k]) => compareKeys(k, step.from) > 0 && compareKeys(k, step.to) <= 0);
        return expect([...found]).toEqual(wanted);
      }
      case 'search':
        return this.#search(wire, step.word);
      case 'schema': {
        const property = { type: 'string', 'x-service-types': step.types };
        const schema = { type: 'object', properties: { word: property }, additionalProperties: true };
        const request = { default_type: 'd', document_schemas: { d: { schema } } };
        // Searches go on while the index is rebuilt, whatever follows.
        await wire.expect(200, 'PUT', '/db/v1/tables/t/schema', request);
        return;
      }
      case 'recreate':
        await wire.expect(204, 'DELETE', '/db/v1/tables/t');
        await wire.createTable('t', { num_shards: 3 });
        return this.#map.clear();
      case 'reopen':
        expect((await this.#server.stop()).code).toBe(0);
        this.#server = await ChildServer.start({ dataDir: this.#dataDir });
        return;
      case 'crash':
        await this.#server.kill();
        this.#server = await ChildServer.start({ dataDir: this.#dataDir });
        return;
    }
  }

  async compare(): Promise<void> {
    const wire = new WireClient(this.#server.url);
    expect([...(await wire.scan('t'))]).toEqual(this.#sorted());
    for (const word of words) await this.#search(wire, word);
    expect(await wire.count('t')).toBe(this.#map.size);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #batch(
    wire: WireClient,
    parts: { inserts: [string, JsonDocument][]; deletes: string[]; incremented: string[] },
  ) {
    const inserts = new Map(parts.inserts);
    const deletes = parts.deletes.filter((item) => !inserts.has(item));
    const transforms = parts.incremented.map((item) => ({
      key: item,
      operations: [
        { op: '$inc', path: '$.n', value: 1 },
        { op: '$set', path: '$.word', value: 'cedar' },
      ],
      upsert: true,
    }));
    if (inserts.size + deletes.length + transforms.length === 0) return;
    const batch: Batch = { inserts: Object.fromEntries(inserts), deletes, transforms, sync_level: 'full_text' };
    const answer = await wire.batch('t', batch);
    expect(answer.status).toBe(201);
    const deleted = deletes.filter((item) => this.#map.has(item)).length;
    expect(answer.body).toMatchObject({ inserted: inserts.size, deleted, transformed: transforms.length });
    for (const [item, document] of inserts) this.#map.set(item, document);
    for (const item of deletes) this.#map.delete(item);
    for (const { key: item } of transforms) {
      const before = this.#map.get(item) ?? {};
      this.#map.set(item, { ...before, n: Number(before.n ?? 0) + 1, word: 'cedar' });
    }
  }

  async #merge(wire: WireClient, after: string, given: [string, JsonDocument][]): Promise<void> {
    const records = new Map(given.filter(([item]) => compareKeys(item, after) > 0));
    const last = [...records.keys()].sort(compareKeys).at(-1);
    if (last === undefined) return;
    const request = { records: Object.fromEntries(records), last_merged_id: after, sync_level: 'full_text' };
    const answer = await wire.expect(200, 'POST', '/db/v1/tables/t/merge', request);
    const inside = [...this.#map.keys()].filter((k) => compareKeys(k, after) > 0 && compareKeys(k, last) <= 0);
    const gone = inside.filter((item) => !records.has(item));
    const same = [...records].filter(([item, document]) => Bun.deepEquals(this.#map.get(item), document)).length;
    expect(answer.body).toMatchObject({
      deleted: gone.length,
      skipped: same,
      upserted: records.size - same,
      next_cursor: last,
    });
    for (const item of gone) this.#map.delete(item);
    for (const [item, document] of records) this.#map.set(item, document);
  }

  async #commit(wire: WireClient, step: { key: string; truthful: boolean; document: JsonDocument }): Promise<void> {
    const version = (await wire.lookup('t', step.key))?.version ?? '0';
    const read = { table: 't', key: step.key, version: step.truthful ? version : String(Number(version) + 1) };
    const batch = { inserts: { [step.key]: step.document }, sync_level: 'full_text' };
    const answer = await wire.commit([read], { t: batch });
    expect(answer.status).toBe(step.truthful ? 200 : 409);
    if (step.truthful) this.#map.set(step.key, step.document);
  }

  async #search(wire: WireClient, word: string): Promise<void> {
    // Documents of before a crash become visible with the next write that waits for its range's index.
    const found = await wire.query({
      table: 't',
      full_text_search: { field: 'word', match: word },
      fields: ['n'],
      limit: 100,
    });
    const wanted = this.#sorted().filter(([, document]) => document.word === word);
    expect(found.hits.map(({ _id }) => _id).sort()).toEqual(wanted.map(([item]) => item).sort());
  }

  #sorted(): [string, JsonDocument][] {
    return [...this.#map].sort(([a], [b]) => compareKeys(a, b));
  }
}

test(
  'a table of three ranges equals a map, through reopening and crashes',
  async () => {
    const seed = runSeed();
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        await using twin = await Twin.start();
        for (const each of steps) await twin.take(each);
        await twin.compare();
      }),
      { seed, numRuns: Number(process.env.SUNDEW_MODEL_RUNS ?? 12), endOnFailure: true },
    );
  },
  { timeout: 180_000 },
);
