import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { ModelService } from '../support/providers/model-service.ts';
import { hitKeys, startTestServer, type TestServer } from '../support/test-server.ts';

/** Providers of models that fail, and templates and documents that ask for too much, in front of a server at work. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ file: 'providers:\n  openai:\n    timeout: 300ms\n' });
});
afterAll(() => server[Symbol.asyncDispose]());

interface Details {
  readonly status: {
    readonly readiness: { state: string; complete: boolean; pending_reasons: string[] };
    readonly milestones: { complete: { reached: boolean; blockers: string[] } };
    readonly source_coverage: { failed: number; retrying: number; produced: number };
    readonly error: string;
  };
}

const statusOf = async (table: string) =>
  (await server.send<Details>('GET', `/db/v1/tables/${table}/indexes/meaning`)).body.status;
const write = (table: string, inserts: object, sync_level = 'write') =>
  server.send('POST', `/db/v1/tables/${table}/batch`, { inserts, sync_level });
const ask = async (table: string, semantic_search: string) =>
  hitKeys(await server.send('POST', `/db/v1/tables/${table}/query`, { semantic_search, limit: 1 }));

async function createTable(table: string, index: object) {
  const indexes = { meaning: { type: 'embeddings', ...index } };
  return await server.send('POST', `/db/v1/tables/${table}`, { indexes });
}

async function tableAt(table: string, service: ModelService): Promise<void> {
  const embedder = { provider: 'openai', model: 'small', url: `${service.url}/v1`, api_key: 'k', dimensions: 64 };
  expect((await createTable(table, { field: 'text', embedder })).status).toBe(200);
  expect((await write(table, { before: { text: 'plum cake' } }, 'full_index')).status).toBe(201);
}

describe('M13: while an embedder', () => {
  const faults: Record<string, () => Response | Promise<Response>> = {
    'answers 429 to everything': () => new Response('slow down', { status: 429, headers: { 'retry-after-ms': '300' } }),
    'answers 500 to everything': () => new Response('', { status: 500 }),
    'does not answer': () => new Promise<Response>(() => undefined),
    'refuses the key': () => new Response('{"error":{"message":"no such key"}}', { status: 401 }),
    'answers nonsense': () => new Response('<html>'),
  };

  test.each(Object.entries(faults))(
    '%s, documents are kept and the index says what it waits for, until it is over',
    async (name, fault) => {
      await using service = new ModelService('openai');
      const table = name.replaceAll(' ', '-');
      await tableAt(table, service);
      const asked = service.seen.length;
      service.always = fault;
      expect((await write(table, { soup: { text: 'leek soup' } })).status).toBe(201);
      await until(async () => (await statusOf(table)).readiness.pending_reasons.includes('embedder_unavailable'));
      const { readiness, milestones, source_coverage, error } = await statusOf(table);
      expect([readiness.complete, milestones.complete.reached]).toEqual([false, false]);
      expect(milestones.complete.blockers).toContain('embedder_unavailable');
      expect([source_coverage.failed, source_coverage.retrying]).toEqual([0, 0]);
      expect(error).toStartWith('the provider');
      expect((await server.send('GET', `/db/v1/tables/${table}/lookup/soup`)).status).toBe(200);
      const refused = await write(table, { bread: { text: 'rye bread' } }, 'enrichments');
      expect(refused.status).toBeGreaterThanOrEqual(500);
      expect((await server.send('GET', `/db/v1/tables/${table}/lookup/bread`)).status).toBe(404);
      // Pauses grow: this took a second at least, in which a loop without them sends hundreds.
      expect(service.seen.length - asked).toBeLessThan(40);
      service.always = () => undefined;
      await until(async () => (await statusOf(table)).readiness.state === 'ready');
      await until(async () => (await ask(table, 'soup of leek'))[0] === 'soup');
    },
  );

  test.each([
    ['of another length', [1, 2, 3]],
    ['with a number that is not one', ['NaN', ...new Array(63).fill(0)]],
  ])('gives a vector %s, its document alone goes without', async (name, embedding) => {
    await using service = new ModelService('openai');
    const table = name.replaceAll(' ', '-');
    await tableAt(table, service);
    service.always = ({ body }) =>
      body.input.includes('bad') ? Response.json({ data: [{ index: 0, embedding }] }) : undefined;
    expect((await write(table, { bad: { text: 'bad' } })).status).toBe(201);
    await until(async () => {
      const { failed, retrying } = (await statusOf(table)).source_coverage;
      return failed + retrying === 1;
    });
    expect((await write(table, { soup: { text: 'leek soup' } }, 'full_index')).status).toBeLessThan(300);
    await until(async () => (await ask(table, 'soup of leek'))[0] === 'soup');
    expect((await server.send('GET', `/db/v1/tables/${table}/lookup/bad`)).status).toBe(200);
  });

  test('fails, its requests, failures and breaker are in the status and the metrics', async () => {
    const { body } = await server.send<{ providers: { provider: string; failures: number; breaker: string }[] }>(
      'GET',
      '/db/v1/status',
    );
    expect(body.providers.map(({ provider }) => provider)).toEqual(['openai']);
    expect(body.providers[0]?.failures).toBeGreaterThan(5);
    expect(JSON.stringify(body.providers)).not.toMatch(/127\.0\.0\.1|Bearer/);
  });
});

describe('I11: a template', () => {
  const embedder = { provider: 'mock', model: 'words', dimensions: 64 };
  const nested = `${'{{#each @root.list}}'.repeat(10)}x${'{{/each}}'.repeat(10)}`;

  test.each([
    ['of half a megabyte', '{{text}}'.repeat(65_536), '"template" may have 65536 characters at most'],
    ['whose blocks nest without end', '{{#if a}}'.repeat(3_000), 'its blocks nest too deep'],
    ['with a helper that does not exist', '{{constructor "return process"}}', 'there is no helper "constructor"'],
    ['that is not closed', '{{#each list}}', 'line 1, column 15'],
    ['that would render itself', '{{> self}}', 'line 1, column 1'],
  ])('%s is refused when the index is created', async (_name, template, sentence) => {
    const { status, body } = await createTable('refused', { template, embedder });
    expect([status, body.error]).toEqual([400, expect.stringContaining(sentence)]);
  });

  test('that a document makes run without end fails for this document, which stays; the others go on', async () => {
    expect((await createTable('bomb', { template: `${nested}{{text}}`, embedder })).status).toBe(200);
    const list = Array.from({ length: 64 }, (_, at) => at);
    expect((await write('bomb', { bomb: { list, text: 'a bomb' }, soup: { text: 'leek soup' } })).status).toBe(201);
    await until(async () => {
      const { failed, retrying, produced } = (await statusOf('bomb')).source_coverage;
      return failed + retrying === 1 && produced > 0;
    });
    await until(async () => (await ask('bomb', 'soup of leek'))[0] === 'soup');
    const refused = await write('bomb', { other: { list, text: 'a bomb' } }, 'enrichments');
    expect(refused.body.error).toContain('the template asks for too much');
  });

  test('shows nothing but the members of its document', async () => {
    const template = '{{constructor.name}}{{__proto__}}{{toString}}{{lookup this "constructor"}}';
    expect((await createTable('prototype', { template, embedder })).status).toBe(200);
    expect((await write('prototype', { a: { text: 'x' } }, 'full_index')).status).toBe(201);
    expect((await statusOf('prototype')).source_coverage).toMatchObject({ failed: 0, retrying: 0, produced: 0 });
  });
});
