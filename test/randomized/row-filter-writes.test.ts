import { afterAll, beforeAll, expect, test } from 'bun:test';
import { ServiceError } from '../../src/protocol/service-error.ts';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Random writes by callers with random row filters, beside a plain map: a write is taken where every document that it names is
 * absent or seen before it, and seen in what it leaves, and then does what it does to the documents that are seen; any other
 * is refused and changes nothing.
 */

interface Document {
  team?: string;
  n?: number;
  text?: string;
  since?: string;
}
type Sees = (document: Document) => boolean;
interface Filter {
  node: object;
  sees: Sees;
}
interface Operation {
  op: '$set' | '$inc' | '$unset';
  path: 'team' | 'n';
  value?: string | number;
}
interface Transform {
  key: string;
  operations: Operation[];
  upsert: boolean;
}
interface Batch {
  inserts: Record<string, Document>;
  deletes: string[];
  transforms: Transform[];
}

const teams = ['red', 'blue', 'green'];
const words = ['amber', 'birch', 'cedar'];
const longAgo = '2001-01-01T00:00:00Z';
const rounds = 500;
// Every range has some of them, and neighbours.
const keys = ['0', '1', '5', '55', 'A', 'AA', 'K', 'a', 'b', 'h', 'hh', 'p', 'z', '~'];

const directory = new TemporaryDirectory();
const seed = runSeed();
const random = new SeededRandom(seed);
const owner = testCaller();
let database: Database;
/** The documents that are stored and have not expired. */
let state = new Map<string, Document>();

function randomFilter(depth = 0): Filter {
  const [team, n, word] = [random.pick(teams), random.between(1, 8), random.pick(words)];
  const leaves: Filter[] = [
    { node: { term: { team } }, sees: (document) => document.team === team },
    { node: { range: { n: { gte: n } } }, sees: (document) => (document.n ?? -100) >= n },
    { node: { exists: { field: 'n' } }, sees: (document) => document.n !== undefined },
    { node: { match: word, field: 'text' }, sees: ({ text = '' }) => text.split(' ').includes(word) },
    { node: { query: `team:${team} OR n:>${n}` }, sees: (document) => document.team === team || (document.n ?? 0) > n },
  ];
  if (depth === 2 || random.chance(0.6)) return random.pick(leaves);
  const [one, other] = [randomFilter(depth + 1), randomFilter(depth + 1)];
  const nodes = [one.node, other.node];
  return random.pick<Filter>([
    { node: { bool: { must: nodes } }, sees: (document) => one.sees(document) && other.sees(document) },
    { node: { bool: { should: nodes } }, sees: (document) => one.sees(document) || other.sees(document) },
    {
      node: { bool: { must: [one.node], must_not: [other.node] } },
      sees: (document) => one.sees(document) && !other.sees(document),
    },
  ]);
}

function randomDocument(): Document {
  return {
    ...(random.chance(0.8) ? { team: random.pick(teams) } : {}),
    ...(random.chance(0.7) ? { n: random.between(0, 9) } : {}),
    ...(random.chance(0.6) ? { text: [random.pick(words), random.pick(words)].join(' ') } : {}),
    ...(random.chance(0.05) ? { since: longAgo } : {}),
  };
}

/** One that the filter lets through, if it is met in a few tries. */
function documentFor(sees: Sees): Document {
  const tries = Array.from({ length: random.chance(0.85) ? 30 : 1 }, randomDocument);
  return tries.find(sees) ?? randomDocument();
}

/** A key that is free or seen, more often than not. */
function keyFor(sees: Sees): string {
  const own = keys.filter((key) => isFreeOrSeen(key, sees));
  return own.length > 0 && random.chance(0.85) ? random.pick(own) : random.pick(keys);
}

function isFreeOrSeen(key: string, sees: Sees): boolean {
  const document = state.get(key);
  return document === undefined || sees(document);
}

function randomTransform(sees: Sees): Transform {
  const operation = random.pick<() => Operation>([
    () => ({ op: '$set', path: 'team', value: random.pick(teams) }),
    () => ({ op: '$inc', path: 'n', value: random.between(-2, 2) }),
    () => ({ op: '$unset', path: random.pick(['team', 'n']) }),
  ]);
  const operations = Array.from({ length: random.between(0, 2) }, operation);
  return { key: keyFor(sees), operations, upsert: random.chance(0.4) };
}

function randomBatch(sees: Sees): Batch {
  const batch: Batch = { inserts: {}, deletes: [], transforms: [] };
  for (let count = random.between(1, 3); count > 0; count -= 1) {
    const key = keyFor(sees);
    switch (random.between(0, 2)) {
      case 0:
        if (!batch.deletes.includes(key)) batch.inserts[key] = documentFor(sees);
        break;
      case 1:
        if (!Object.hasOwn(batch.inserts, key)) batch.deletes.push(key);
        break;
      default:
        batch.transforms.push(randomTransform(sees));
    }
  }
  const isEmpty = Object.keys(batch.inserts).length + batch.deletes.length + batch.transforms.length === 0;
  return isEmpty ? { ...batch, deletes: [keyFor(sees)] } : batch;
}

/** The documents after a batch, whoever sends it; and those that it has written. */
function after({ inserts, deletes, transforms }: Batch): {
  left: Map<string, Document>;
  written: Map<string, Document>;
} {
  const left = new Map(state);
  const written = new Map<string, Document>();
  const put = (key: string, document: Document) => {
    left.set(key, document);
    written.set(key, document);
  };
  for (const [key, document] of Object.entries(inserts)) put(key, document);
  for (const key of deletes) left.delete(key);
  for (const { key, operations, upsert } of transforms) {
    const found = left.get(key);
    const held = found?.since === undefined ? found : undefined;
    if (!held && !upsert) continue;
    const document: Record<string, unknown> = { ...held };
    for (const { op, path, value } of operations) {
      if (op === '$unset') delete document[path];
      else document[path] = op === '$set' ? value : Number(document[path] ?? 0) + Number(value);
    }
    put(key, document as Document);
  }
  for (const [key, { since }] of left) if (since !== undefined) left.delete(key);
  return { left, written };
}

const namedBy = ({ inserts, deletes, transforms }: Batch) =>
  new Set([...Object.keys(inserts), ...deletes, ...transforms.map(({ key }) => key)]);

/** The documents of the table, to those who see everything. */
async function stored(): Promise<Map<string, Document>> {
  const found = new Map<string, Document>();
  for await (const page of await database.services.documents.scan(
    'notes',
    { fields: ['*'], single_key: true },
    owner,
  )) {
    for (const line of page) {
      const { _id, ...document } = JSON.parse(line) as Document & { _id: string };
      found.set(_id, document);
    }
  }
  return found;
}

const sorted = (documents: ReadonlyMap<string, Document>) =>
  [...documents].sort(([left], [right]) => Buffer.compare(Buffer.from(left), Buffer.from(right)));

/** The answer, or the code of the refusal. */
async function answerTo(request: Promise<unknown>): Promise<unknown> {
  return request.catch((error: unknown) => {
    if (error instanceof ServiceError) return error.code;
    throw error;
  });
}

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  const schema = { ttl: { duration: '24h', field: 'since' } };
  await database.services.tables.create('notes', { num_shards: random.between(1, 3), schema }, owner);
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

/** A batch by a caller that sees some documents, alone or as a commit with what the caller has read. */
async function writeBatch({ node, sees }: Filter): Promise<void> {
  const { writes, documents } = database.services;
  const caller = testCaller({ rowFilter: { notes: node } });
  const batch = randomBatch(sees);
  const { left, written } = after(batch);
  const isRefused = [...namedBy(batch)].some((key) => {
    const document = written.get(key);
    return !isFreeOrSeen(key, sees) || (document !== undefined && !sees(document));
  });
  const read: { table: string; key: string; version: string }[] = [];
  let isConflict = false;
  const asCommit = random.chance(0.4);
  for (let count = asCommit ? random.between(0, 2) : 0; count > 0; count -= 1) {
    const key = random.pick(keys);
    const found = async () => documents.lookup('notes', key, undefined, caller);
    const seen = await found().then(
      ({ version }) => String(version),
      () => '0',
    );
    const isWrong = random.chance(0.15);
    isConflict ||= isWrong;
    read.push({ table: 'notes', key, version: isWrong ? String(Number(seen) + 1) : seen });
  }
  const commit = () => writes.commit(bodyOf({ read_set: read, tables: { notes: batch } }), caller);
  const answer = await answerTo(asCommit ? commit() : writes.batch('notes', bodyOf(batch), caller));
  const at = { seed, node: JSON.stringify(node), batch: JSON.stringify(batch), read: JSON.stringify(read) };
  if (isConflict || isRefused) {
    expect({ ...at, answer }).toEqual({ ...at, answer: isConflict ? 'transaction_conflict' : 'forbidden' });
    return;
  }
  const inserted = Object.keys(batch.inserts).length;
  const deleted = new Set(batch.deletes.filter((key) => state.has(key))).size;
  const counts = expect.objectContaining({ inserted, deleted });
  expect({ ...at, answer }).toEqual({
    ...at,
    answer: { status: 'committed', counts: asCommit ? { notes: counts } : counts },
  });
  state = left;
}

/** A page of a linear merge, which is about the documents that are seen alone. */
async function mergePage({ node, sees }: Filter): Promise<void> {
  const caller = testCaller({ rowFilter: { notes: node } });
  const [from, ...taken] = [...new Set(['', ...keys.filter(() => random.chance(0.3))])];
  const last_merged_id = random.chance(0.5) ? (from ?? '') : (taken.shift() ?? '');
  const some = taken.filter((key) => isFreeOrSeen(key, sees) || random.chance(0.1));
  const records = Object.fromEntries(some.map((key) => [key, documentFor(sees)]));
  const to = some.length === 0 ? undefined : some.at(-1);
  if (to === undefined && last_merged_id === '') return;
  const dry_run = random.chance(0.2);
  const page = { records, last_merged_id, dry_run };
  const answer = await answerTo(database.services.writes.merge('notes', bodyOf(page), caller));
  const at = { seed, node: JSON.stringify(node), page: JSON.stringify(page) };
  if (Object.entries(records).some(([key, document]) => !isFreeOrSeen(key, sees) || !sees(document))) {
    expect({ ...at, answer }).toEqual({ ...at, answer: 'forbidden' });
    return;
  }
  const isWithin = (key: string) => key > last_merged_id && (to === undefined || key <= to);
  const seen = [...state].filter(([key, document]) => isWithin(key) && sees(document)).map(([key]) => key);
  const deleted = seen.filter((key) => !Object.hasOwn(records, key));
  const counts = { keys_scanned: seen.length, deleted: deleted.length };
  expect({ ...at, answer }).toEqual({ ...at, answer: expect.objectContaining(counts) });
  if (dry_run) return;
  for (const key of deleted) state.delete(key);
  for (const [key, document] of Object.entries(records)) state.set(key, document);
  for (const [key, { since }] of state) if (since !== undefined) state.delete(key);
}

test('a write under a row filter is taken where what it names is seen before and after, and touches nothing else', async () => {
  const writers = [writeBatch, writeBatch, mergePage];
  let filter = randomFilter();
  for (let round = 0; round < rounds; round += 1) {
    if (random.chance(0.2)) filter = randomFilter();
    if (random.chance(0.25)) {
      const batch = randomBatch(() => true);
      await database.services.writes.batch('notes', bodyOf(batch), owner);
      state = after(batch).left;
    } else await random.pick(writers)(filter);
    const documents = sorted(await stored());
    expect({ seed, round, documents }).toEqual({ seed, round, documents: sorted(state) });
  }
}, 120_000);

test('documents that change hands while they are written are never written by whoever does not see them', async () => {
  const { writes } = database.services;
  const red = testCaller({ rowFilter: { notes: { term: { team: 'red' } } } });
  const some = keys.slice(0, 4);
  const own = () => Object.fromEntries(some.map((key) => [key, { team: 'red', n: 0 }]));
  const hidden = () => Object.fromEntries(some.map((key) => [key, { team: 'blue', n: 0, secret: true }]));
  let taken = 0;
  await writes.batch('notes', bodyOf({ inserts: own() }), owner);
  for (let round = 0; round < 150; round += 1) {
    const operations = [
      { op: '$set', path: 'team', value: 'red' },
      { op: '$inc', path: 'n', value: 1 },
    ];
    const steal = async () => {
      const answer = await answerTo(
        writes.batch('notes', bodyOf({ transforms: some.map((key) => ({ key, operations })) }), red),
      );
      if (answer === 'forbidden' || answer === 'transaction_conflict') return;
      expect(answer).toMatchObject({ status: 'committed' });
      taken += 1;
    };
    const hide = () => writes.batch('notes', bodyOf({ inserts: round % 3 === 0 ? hidden() : own() }), owner);
    await Promise.all(random.chance(0.5) ? [steal(), hide(), steal()] : [hide(), steal(), steal()]);
    for (const [key, document] of await stored()) {
      const isStolen = document.team === 'red' && 'secret' in document;
      expect({ seed, round, key, isStolen }).toEqual({ seed, round, key, isStolen: false });
    }
  }
  expect(taken).toBeGreaterThan(10);
}, 120_000);
