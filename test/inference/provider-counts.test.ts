import { expect, setDefaultTimeout, test } from 'bun:test';
import { ChildServer } from '../support/fault/child-server.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { ModelService } from '../support/providers/model-service.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(120_000);

/** The cost of models, by provider: the status and the metrics say what the providers themselves have counted. */

interface Counted {
  readonly provider: string;
  readonly requests: number;
  readonly failures: number;
  readonly retries: number;
  readonly tokens: number;
  readonly waits: number;
  readonly waited_ms: number;
}

const models = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));
const wordsOf = (text: string) => text.split(' ').length;

test('requests, tokens, waits and failures of every provider are in the status and in the metrics', async () => {
  await using service = new ModelService('openai');
  using directory = new TemporaryDirectory();
  const own = ['--models-dir', models, '--allow-downloads', 'false'];
  await using server = await ChildServer.start({ dataDir: directory.path, arguments: own });
  const wire = new WireClient(server.url);
  const providers = async () => {
    const { body } = await wire.expect(200, 'GET', '/db/v1/status');
    const { providers } = body as unknown as { providers: Counted[] };
    return new Map(providers.map((each) => [each.provider, each]));
  };
  expect(await providers()).toEqual(new Map());

  // One request a second: the second write has to wait, also where the first one takes long.
  const limits = { requests_per_minute: 60, burst: 1 };
  const hosted = { provider: 'openai', model: 'small', url: `${service.url}/v1`, api_key: 'k', ...limits };
  const index = (embedder: Record<string, string | number>) => ({ type: 'embeddings', field: 'text', embedder });
  const here = index({ provider: 'service', model: 'tiny-bert' });
  await wire.createTable('notes', { indexes: { hosted: index(hosted), here } });
  const write = (key: string, text: string) =>
    wire.expect(201, 'POST', '/db/v1/tables/notes/batch', {
      inserts: { [key]: { text } },
      sync_level: 'full_index',
    });
  await write('a', 'the king sat on the mat');
  service.next.push(() => new Response('overloaded', { status: 503 }));
  await write('b', 'a dog');
  const counted = await providers();
  expect([...counted.keys()].sort()).toEqual(['openai', 'this_server']);
  const openai = counted.get('openai');
  expect(openai).toMatchObject({ requests: service.seen.length, failures: 1, retries: 1 });
  // Those of the request that failed cost nothing.
  const failed = wordsOf('a dog');
  expect(openai?.tokens).toBe(service.texts.reduce((sum, text) => sum + wordsOf(text), 0) - failed);
  expect(openai?.waits).toBeGreaterThan(0);
  expect(openai?.waited_ms).toBeGreaterThan(0);
  const { requests = 0, tokens = 0 } = counted.get('this_server') ?? {};
  // The probe of the index, and a request for each write.
  expect(requests).toBe(3);
  expect(tokens).toBeGreaterThan(wordsOf('the king sat on the mat'));
  expect(JSON.stringify([...counted.values()])).not.toContain('127.0.0.1');

  const metrics = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  const metric = (name: string, provider: string) =>
    Number(new RegExp(`^sundew_provider_${name}\\{provider="${provider}"\\} (\\S+)$`, 'm').exec(metrics)?.[1]);
  expect(metric('requests_total', 'openai')).toBe(openai?.requests ?? -1);
  expect(metric('failures_total', 'openai')).toBe(1);
  expect(metric('retries_total', 'openai')).toBe(1);
  expect(metric('tokens_total', 'openai')).toBe(openai?.tokens ?? -1);
  expect(metric('waits_total', 'openai')).toBe(openai?.waits ?? -1);
  expect(metric('wait_seconds_total', 'openai')).toBeCloseTo((openai?.waited_ms ?? -1) / 1_000, 3);
  expect(metric('requests_total', 'this_server')).toBe(requests);
  expect(metric('tokens_total', 'this_server')).toBe(tokens);
  expect(metric('failures_total', 'this_server')).toBe(0);
});
