import { expect, test } from 'bun:test';
import { runDemo } from '../../../src/cli/demo/run-demo.ts';
import type { Terminal } from '../../../src/cli/demo/terminal.ts';
import { wordnetGlossCount } from '../../../src/cli/demo/wordnet-glosses.ts';
import { systemClock } from '../../../src/lib/clock.ts';

interface Recorded {
  keys: Set<string>;
  syncLevels: (string | undefined)[];
  queries: unknown[];
  edges: number;
  paths: unknown[];
  refusals: number;
}

/** Answers as the server does, keeps what it was sent, and asks for a slower pace once. */
function recordingServer(recorded: Recorded) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname.includes('/lookup/')) return Response.json({ words: [`word of ${pathname.split('/').at(-1)}`] });
      const body = (await request.json()) as Record<string, unknown>;
      if (pathname.endsWith('/query')) {
        recorded.queries.push(body);
        const hit = {
          _id: 'n:1',
          _source: { words: ['volcano', 'vent'], gloss: 'a fissure; "it smokes"' },
          _highlight: { gloss: ['a [fissure]'] },
        };
        const aggregations = { kinds: { buckets: [{ key: 'noun', doc_count: 1_200 }] } };
        const hits = { total: { value: 1_234, relation: 'gte' }, hits: [hit] };
        return Response.json({ responses: [{ hits, aggregations, took: 1, status: 200 }] });
      }
      if (pathname.endsWith('/shortest-path')) {
        recorded.paths.push(body);
        const edges = [
          { source: 'a', target: 'b', type: 'hypernym' },
          { source: 'c', target: 'b', type: 'hypernym' },
        ];
        return Response.json({ paths: [{ nodes: ['a', 'b', 'c'], edges, length: 2 }] });
      }
      if (!pathname.endsWith('/batch')) return Response.json({}, { status: 201 });
      if (recorded.refusals === 0) {
        recorded.refusals += 1;
        return Response.json({ code: 'backpressure', retry_after_ms: 1 }, { status: 503 });
      }
      const inserts = body.inserts as Record<string, { _edges: { related: Record<string, unknown[]> } }>;
      for (const [key, { _edges }] of Object.entries(inserts)) {
        if (!recorded.keys.has(key)) recorded.edges += Object.values(_edges.related).flat().length;
        recorded.keys.add(key);
      }
      recorded.syncLevels.push(body.sync_level as string | undefined);
      return Response.json({ status: 'committed' }, { status: 201 });
    },
  });
}

test('the demo writes every gloss once, waits until all are searchable, shows five kinds of search, and follows pointers', async () => {
  const recorded: Recorded = { keys: new Set(), syncLevels: [], queries: [], edges: 0, paths: [], refusals: 0 };
  using server = recordingServer(recorded);
  let text = '';
  const terminal: Terminal = {
    write: (written) => {
      text += written;
    },
    interactive: false,
    color: false,
    columns: 90,
  };
  await runDemo({ url: `${server.url.origin}/db/v1/`, terminal, clock: systemClock });

  expect(recorded.refusals).toBe(1);
  expect(recorded.keys.size).toBe(wordnetGlossCount);
  expect(recorded.syncLevels.filter((level) => level !== undefined)).toEqual(['full_index']);
  expect(recorded.syncLevels.at(-1)).toBe('full_index');
  expect(text).toContain('100 %  117,791 documents');
  expect(text).toMatch(/A word: volcano {2}at least 1,234 found in \d+\.\d ms\n {2}volcano, vent +a fissure\n/);
  expect(text).toContain('A phrase: "body of water"');
  expect(text).toMatch(/With slips, matches marked: volcannic erruption .*\n {2}volcano, vent +a \[fissure\]\n/);
  expect(text).toMatch(/Counted by part of speech: light .*\n {2}noun +1,200\n/);
  expect(text).toMatch(/ {2}volcanic er {2}volcano +\d+\.\d ms\n/);
  expect(recorded.queries).toHaveLength(10);
  expect(recorded.queries.at(-1)).toMatchObject({ graph_searches: { kinds: { index_name: 'related', leg: true } } });
  expect(text).toMatch(
    /Words and pointers in one query: water, among the kinds of bird .*\n {2}volcano, vent +a fissure\n/,
  );
  expect(recorded.edges).toBeGreaterThan(370_000);
  expect(recorded.paths).toHaveLength(2);
  expect(text).toMatch(/From one word to another: dog, cat {2}2 steps in \d+\.\d ms\n/);
  expect(text).toMatch(/ {3}word of a\n {2}is a kind of +word of b\n {2}of which a kind is +word of c\n/);
}, 120_000);

test('the demo says in one sentence that no server answers', async () => {
  const terminal: Terminal = { write: () => {}, interactive: false, color: false, columns: 90 };
  using closed = Bun.serve({ port: 0, fetch: () => new Response() });
  const url = closed.url.origin;
  await closed.stop(true);
  await expect(runDemo({ url, terminal, clock: systemClock })).rejects.toThrow(/^no answer from http:/);
});
