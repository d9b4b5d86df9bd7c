import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { ChildServer } from '../support/fault/child-server.ts';
import { DurableShadow } from '../support/fault/durable-shadow.ts';
import { changingCalls } from '../support/fault/fault-control.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { type Batch, type JsonDocument, WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

const environment = { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' };
const indexes = {
  v: { type: 'embeddings', external: true, dimension: 2 },
  s: { type: 'embeddings', external: true, sparse: true },
  g: { type: 'graph' },
};
const kinds = ['full_text_index_v0', 'v', 's', 'g'];
const words = ['amber', 'birch', 'cedar'];
const keys = Array.from({ length: 40 }, (_, at) => `k${String(at).padStart(2, '0')}`);

/** The documents that the table should hold: a word for each key, by which every kind of index can be asked for it. */
class Model {
  readonly wire: WireClient;
  readonly #words = new Map<string, string>();

  constructor(wire: WireClient, words?: Iterable<[string, string]>) {
    this.wire = wire;
    this.#words = new Map(words);
  }

  /** The same documents, at a server that was started again. */
  at(server: ChildServer): Model {
    return new Model(new WireClient(server.url), this.#words);
  }

  /** Writes documents, or deletes those without a word. Waits until every index shows them, unless told not to. */
  async write(changes: Record<string, string | undefined>, level = 'full_index'): Promise<void> {
    const inserts: Record<string, JsonDocument> = {};
    const deletes: string[] = [];
    for (const [key, word] of Object.entries(changes)) {
      if (word === undefined) deletes.push(key);
      else inserts[key] = documentOf(word);
    }
    const batch: Batch = { inserts, deletes, sync_level: level };
    expect((await this.wire.batch('t', batch)).status).toBe(201);
    for (const [key, word] of Object.entries(changes)) {
      if (word === undefined) this.#words.delete(key);
      else this.#words.set(key, word);
    }
  }

  /**
   * Asks every index for the documents of each word, counts, and looks
   * documents up. Fails at any refusal and any other answer.
   */
  async check(): Promise<void> {
    expect(await this.wire.count('t')).toBe(this.#words.size);
    for (const [at, word] of words.entries()) {
      const expected = [...this.#words].flatMap(([key, own]) => (own === word ? [key] : [])).sort();
      const vector = Array.from({ length: 2 }, (_, axis) => (axis === 0 ? Math.cos(at * 2) : Math.sin(at * 2)));
      const found = {
        text: await this.#keys({ full_text_search: { field: 'word', match: word } }),
        dense: await this.#keys({ embeddings: { v: vector }, indexes: ['v'], distance_under: 0.1 }),
        sparse: await this.#keys({ embeddings: { s: { indices: [at], values: [1] } }, indexes: ['s'] }),
        graph: await this.#sources(word),
      };
      expect(found).toEqual({ text: expected, dense: expected, sparse: expected, graph: expected });
    }
    const key = keys[7] ?? '';
    expect((await this.wire.lookup('t', key))?.document.word).toBe(this.#words.get(key) ?? undefined);
  }

  async #keys(query: JsonDocument): Promise<string[]> {
    const { hits } = await this.wire.query({ table: 't', limit: 100, ...query });
    return hits.map(({ _id }) => _id).sort();
  }

  async #sources(word: string): Promise<string[]> {
    const path = `/db/v1/tables/t/indexes/g/edges?key=${word}&direction=in&limit=100`;
    const { body } = await this.wire.expect(200, 'GET', path);
    const { edges, partial } = body as unknown as { edges: { source: string }[]; partial?: string };
    expect(partial).toBeUndefined();
    return edges.map(({ source }) => source).sort();
  }

  async message(): Promise<string> {
    return ((await this.wire.send('GET', '/db/v1/status')).body as { message: string }).message;
  }

  /** How far an index is durable, what it says of that, and whether it shows everything. */
  async status(index: string) {
    const { body } = await this.wire.expect(200, 'GET', `/db/v1/tables/t/indexes/${index}`);
    return (body as unknown as { status: { error: string; readiness: { state: string } } }).status;
  }
}

function documentOf(word: string): JsonDocument {
  const at = words.indexOf(word);
  const _embeddings = { v: [Math.cos(at * 2), Math.sin(at * 2)], s: { indices: [at], values: [1] } };
  return { word, _embeddings, _edges: { g: { is: [{ target: word }] } } };
}

async function filled(server: ChildServer): Promise<Model> {
  const model = new Model(new WireClient(server.url));
  await model.wire.createTable('t', { indexes });
  await model.write(Object.fromEntries(keys.map((key, at) => [key, words[at % 3]])));
  return model;
}

const unwritten = 'cannot write its checkpoint now';

/** Every index has told that its checkpoint cannot be written. */
async function untilUnwritten(model: Model): Promise<void> {
  await until(async () => {
    await model.check();
    return (await model.message()).split(unwritten).length === kinds.length + 1;
  });
}

/** A disk that takes nothing that an index writes. */
const full = { calls: changingCalls, path: '/indexes/', action: 'ENOSPC' } as const;

describe('indexes whose checkpoints the disk does not take', () => {
  test('a full disk: all are searched with every write, say so, and are durable soon after there is room', async () => {
    using place = new FaultPlace();
    const shadow = new DurableShadow(place.dataDir, `${place.directory}/shadow`);
    let model: Model;
    {
      await using server = await place.start({ environment, shadow });
      model = await filled(server);
      const fault = place.control.arm(full);
      await untilUnwritten(model);
      for (const kind of kinds) {
        expect(await model.status(kind)).toMatchObject({
          error: expect.stringContaining('No space left'),
          readiness: { state: 'ready' },
        });
      }
      expect(await (await fetch(`${server.metricsUrl}/metrics`)).text()).toContain('{kind="index_unwritten"} 4\n');
      for (let round = 0; round < 8; round += 1) {
        const since = fault.acted;
        const at = round * 3;
        await model.write({ [keys[at] ?? '']: words[round % 3], [keys[at + 1] ?? '']: undefined });
        await model.check();
        if (round < 3) await until(async () => fault.acted > since);
        await model.check();
      }
      // Files of checkpoints that were given up are gone.
      expect(place.files('/indexes/').filter((path) => /\.(segment|dead|flat|idx|draft)$/.test(path))).toEqual([]);
      fault.disarm();
      await until(async () => (await model.message()) === '');
      await model.check();
      expect((await model.status('v')).error).toBe('');
      expect(server.log).not.toContain('an index failed');
      await server.kill();
    }
    shadow.replace();
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
    await using server = await place.start();
    await model.at(server).check();
  });

  test('a full disk: commits with files that are too large to wait in memory are searched as well', async () => {
    using place = new FaultPlace();
    await using server = await place.start({ environment });
    const wire = new WireClient(server.url);
    const rule = { name: 'values', match: 'value', mapping: { type: 'keyword' } };
    await wire.createTable('t', { schema: { dynamic_templates: [rule] } });
    // Of values like these the columns of a segment have more than four MiB.
    const longValue = (round: number, at: number) =>
      Array.from({ length: 125 }, (_, part) => Bun.hash(`${round} ${at} ${part}`).toString(16).padStart(16, '0')).join(
        '',
      );
    const write = async (round: number) => {
      const inserts = Array.from({ length: 3_000 }, (_, at) => [
        `k${round}-${at}`,
        { round, value: longValue(round, at) },
      ]);
      const batch = { inserts: Object.fromEntries(inserts), sync_level: 'full_index' };
      expect((await wire.batch('t', batch)).status).toBe(201);
    };
    const check = async (rounds: number) => {
      expect(await wire.count('t')).toBe(3_000 * rounds);
      for (let round = 0; round < rounds; round += 1) {
        const search = { full_text_search: { field: 'value', term: longValue(round, 7) } };
        const { body } = await wire.expect(200, 'POST', '/db/v1/query', { table: 't', ...search });
        expect(body).toMatchObject({ responses: [{ hits: { hits: [{ _id: `k${round}-7` }] } }] });
        expect(JSON.stringify(body)).not.toContain('partial');
      }
    };
    await write(0);
    const fault = place.control.arm(full);
    for (let round = 1; round < 5; round += 1) {
      await write(round);
      await check(round + 1);
    }
    expect(fault.acted).toBeGreaterThan(4);
    const status = async () => ((await wire.send('GET', '/db/v1/status')).body as { message: string }).message;
    await until(async () => (await status()).includes(unwritten));
    fault.disarm();
    await until(async () => (await status()) === '');
    await check(5);
    expect(server.log).not.toContain('an index failed');
    await server.kill();
    await using again = await place.start();
    expect(await new WireClient(again.url).count('t')).toBe(15_000);
  });

  test('a read-only disk: all are searched, and take writes again when it does', async () => {
    using place = new FaultPlace();
    await using server = await place.start({ environment });
    const model = await filled(server);
    const readOnly = place.control.arm({ calls: changingCalls, path: place.dataDir, action: 'EROFS' });
    await untilUnwritten(model);
    for (let round = 0; round < 5; round += 1) {
      const since = readOnly.acted;
      await until(async () => readOnly.acted > since + 1);
      await model.check();
    }
    readOnly.disarm();
    await until(async () => (await model.message()) === '');
    await model.write({ k00: 'cedar', k01: undefined });
    await model.check();
    expect(server.log).not.toContain('an index failed');
    expect((await server.stop()).code).toBe(0);
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  });

  test('kills and losses of power, while the disk is full and after: every answer is whole', async () => {
    const seed = runSeed();
    console.log(`seed ${seed}`);
    const random = new SeededRandom(seed);
    using place = new FaultPlace();
    let model: Model;
    {
      await using server = await place.start({ environment });
      model = await filled(server);
      await server.stop();
    }
    for (let round = 0; round < 8; round += 1) {
      const hasPowerFailure = random.chance(0.5);
      const shadow = new DurableShadow(place.dataDir, `${place.directory}/shadow-${round}`);
      const server = await place.start({ environment, shadow });
      model = model.at(server);
      await model.check();
      const skip = random.between(0, 6);
      const fault = place.control.arm({ ...full, skip });
      for (let write = random.between(1, 6); write > 0; write -= 1) {
        const word = random.chance(0.3) ? undefined : random.pick(words);
        await model.write({ [random.pick(keys)]: word }, random.pick(['full_index', 'write']));
      }
      await model.write({ [random.pick(keys)]: random.pick(words) });
      await model.check();
      if (random.chance(0.7)) await until(async () => fault.acted > 0);
      await model.check();
      const isKilledWhileFull = random.chance(0.4);
      if (!isKilledWhileFull) {
        fault.disarm();
        if (random.chance(0.5)) await until(async () => (await model.message()) === '');
        else await Bun.sleep(random.between(0, 300));
        await model.check();
      }
      await server.kill();
      place.control.disarmAll();
      if (hasPowerFailure) shadow.replace();
      expect([round, offlineCheck(place.dataDir)]).toMatchObject([round, { code: 0 }]);
    }
    await using server = await place.start();
    await model.at(server).check();
  });

  test('a start on a full disk: what the checkpoints lack is replayed and searched', async () => {
    using place = new FaultPlace();
    let model: Model;
    {
      await using server = await place.start({ environment });
      model = await filled(server);
      place.control.arm(full);
      await untilUnwritten(model);
      await model.write({ k00: 'birch', k05: undefined });
      await server.kill();
    }
    await using server = await place.start({ environment });
    model = model.at(server);
    await untilUnwritten(model);
    place.control.disarmAll();
    await until(async () => (await model.message()) === '');
    await model.check();
  });
});

describe('a sync that fails in a checkpoint', () => {
  test.each(['EIO', 'ENOSPC'] as const)(
    '%s, of files that the index has written before: it is opened again, and they are written again',
    async (action) => {
      using place = new FaultPlace();
      const shadow = new DurableShadow(place.dataDir, `${place.directory}/shadow`);
      const dimension = 64;
      const vectorOf = (at: number) => Array.from({ length: dimension }, (_, axis) => Math.sin(at * 7 + axis * at));
      const nearest = async (wire: WireClient, at: number) => {
        const query = { table: 't', embeddings: { v: vectorOf(at) }, indexes: ['v'], limit: 1 };
        return (await wire.query(query)).hits[0]?._id;
      };
      {
        await using server = await place.start({ shadow });
        const wire = new WireClient(server.url);
        await wire.createTable('t', { indexes: { v: { ...indexes.v, dimension } } });
        // A graph is made of them once nothing is written, and a checkpoint of the index's own, with nobody to hear
        // that it fails.
        const fault = place.control.arm({ calls: ['sync'], path: '.rows$', action, times: 1 });
        const inserts = Array.from({ length: 3_000 }, (_, at) => [`k${at}`, { _embeddings: { v: vectorOf(at) } }]);
        const batch = { inserts: Object.fromEntries(inserts), sync_level: 'full_index' };
        expect((await wire.batch('t', batch)).status).toBe(201);
        await until(async () => fault.acted === 1);
        expect(await nearest(wire, 17)).toBe('k17');
        const more = { inserts: { more: { _embeddings: { v: vectorOf(9_999) } } }, sync_level: 'full_index' };
        expect((await wire.batch('t', more)).status).toBe(201);
        expect((await server.stop()).code).toBe(0);
      }
      shadow.replace();
      expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
      await using server = await place.start();
      const wire = new WireClient(server.url);
      for (const at of [0, 17, 2_999]) expect(await nearest(wire, at)).toBe(`k${at}`);
      expect(await nearest(wire, 9_999)).toBe('more');
      expect(server.log).not.toContain('built again');
    },
  );
});
