import { expect, test } from 'bun:test';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { startTestServer } from '../support/test-server.ts';

interface Result {
  hits: {
    total: { value: number; relation: 'exact' | 'gte' };
    hits: { _id: string; _score: number; _source: { kind: string; n: number } }[];
    max_score: number;
  };
  aggregations?: { kinds: { buckets: { key: string; doc_count: number }[] }; n: { value: number } };
  partial?: boolean;
}

interface Document {
  text: string;
  kind: string;
  n: number;
}

const words = ['amber', 'birch', 'cedar', 'amber amber', 'birch amber'];

test('nothing that an answer claims is untrue while writes are on their way to the index', async () => {
  const seed = runSeed();
  const random = new SeededRandom(seed);
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', { num_shards: 3 });
  const stored = new Map<string, Document>();
  const seen = { exact: 0, gte: 0, incomplete: 0 };
  const query = async (body: object) => {
    const answer = await server.send<{ responses: [Result] }>('POST', '/db/v1/tables/t/query', body);
    expect({ seed, status: answer.status }).toEqual({ seed, status: 200 });
    return answer.body.responses[0];
  };

  const write = async () => {
    const inserts: Record<string, Document> = {};
    const deletes: string[] = [];
    for (let at = random.between(1, 4); at > 0; at -= 1) {
      const key = String.fromCharCode(random.between(0x21, 0x7e)) + random.between(0, 9);
      if (random.between(0, 2) === 0) deletes.push(key);
      else {
        inserts[key] = {
          text: words[random.between(0, words.length - 1)] ?? '',
          kind: `kind${random.between(0, 3)}`,
          n: random.between(0, 100),
        };
      }
    }
    const wanted = deletes.filter((key) => !Object.hasOwn(inserts, key));
    const sync_level = random.between(0, 9) === 0 ? 'full_index' : 'write';
    const answer = await server.send('POST', '/db/v1/tables/t/batch', { inserts, deletes: wanted, sync_level });
    expect({ seed, status: answer.status }).toEqual({ seed, status: 201 });
    for (const key of wanted) stored.delete(key);
    for (const [key, document] of Object.entries(inserts)) stored.set(key, document);
  };

  const checkTotal = ({ hits: { total } }: Result, truth: number, step: number) => {
    seen[total.relation] += 1;
    const holds = total.relation === 'exact' ? total.value === truth : total.value <= truth;
    expect({ seed, step, total, truth, holds }).toMatchObject({ holds: true });
  };

  for (let step = 0; step < 250; step += 1) {
    await write();
    const matching = [...stored].filter(([, { text }]) => text.includes('amber'));
    const amber = { full_text_search: { match: 'amber', field: 'text' }, limit: 400 };
    switch (random.between(0, 3)) {
      case 0: {
        const answer = await query({ count: true });
        expect({ seed, step, relation: answer.hits.total.relation }).toEqual({ seed, step, relation: 'exact' });
        checkTotal(answer, stored.size, step);
        break;
      }
      case 1: {
        const aggregations = { kinds: { type: 'terms', field: 'kind' }, n: { type: 'sum', field: 'n' } };
        const { hits, aggregations: found, partial } = await query({ ...amber, aggregations });
        if (partial || hits.total.relation === 'gte') break;
        expect({ seed, step, n: found?.n.value }).toEqual({
          seed,
          step,
          n: matching.reduce((sum, [, { n }]) => sum + n, 0),
        });
        const counts = Map.groupBy(hits.hits, ({ _source }) => _source.kind);
        const buckets = Object.fromEntries(found?.kinds.buckets.map(({ key, doc_count }) => [key, doc_count]) ?? []);
        expect({ seed, step, buckets }).toEqual({
          seed,
          step,
          buckets: Object.fromEntries([...counts].map(([kind, of]) => [kind, of.length])),
        });
        break;
      }
      case 2: {
        const answer = await query(amber);
        checkTotal(answer, matching.length, step);
        const { hits, max_score } = answer.hits;
        expect({ seed, step, max_score }).toEqual({ seed, step, max_score: hits[0]?._score ?? 0 });
        for (const { _id, _source } of hits) {
          expect({ seed, step, _id, _source }).toMatchObject({ _id, _source: stored.get(_id) ?? { gone: true } });
        }
        break;
      }
      default: {
        const details = await server.send<{
          status: { readiness: { complete: boolean }; runtime_fresh: boolean; doc_count: number };
        }>('GET', '/db/v1/tables/t/indexes/full_text_index_v0');
        const { readiness, runtime_fresh, doc_count } = details.body.status;
        expect({ seed, step, runtime_fresh }).toEqual({ seed, step, runtime_fresh: readiness.complete });
        if (readiness.complete) expect({ seed, step, doc_count }).toEqual({ seed, step, doc_count: stored.size });
        else seen.incomplete += 1;
      }
    }
  }
  // The run has met both states, or it has shown nothing.
  expect(Object.values(seen).every((count) => count > 5)).toBe(true);
}, 120_000);
