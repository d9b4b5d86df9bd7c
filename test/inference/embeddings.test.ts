import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { limits } from '../../src/config/limits.ts';
import { holeModel } from '../support/files/holed-model.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/embedders/', import.meta.url));
const dense = await Bun.file(`${fixtures}tiny-bert/reference.json`).json();
const sparse = await Bun.file(`${fixtures}tiny-sparse/reference.json`).json();

interface Item {
  embedding: number[] & { indices: number[]; values: number[] };
  index: number;
}
interface EmbedAnswer extends Record<string, unknown> {
  data: Item[];
  usage: { prompt_tokens: number; total_tokens: number };
  errors: { index: number; code: string }[];
  summary: object;
}

let server: TestServer;
const directory = new TemporaryDirectory();

beforeAll(async () => {
  cpSync(fixtures, join(directory.path, 'embedders'), { recursive: true });
  cpSync(`${fixtures}tiny-bert`, join(directory.path, 'embedders/prefixed'), { recursive: true });
  cpSync(`${fixtures}tiny-sparse`, join(directory.path, 'embedders/unread-sparse'), { recursive: true });
  const prefixes = { query: 'the king ', instruction: 'a {instruction} . ' };
  writeFileSync(join(directory.path, 'embedders/prefixed/manifest.json'), JSON.stringify({ prefixes }));
  const bare = join(directory.path, 'embedders/bare');
  cpSync(`${fixtures}tiny-bert`, bare, { recursive: true });
  const tokenizer = JSON.parse(readFileSync(join(bare, 'tokenizer.json'), 'utf8'));
  writeFileSync(join(bare, 'tokenizer.json'), JSON.stringify({ ...tokenizer, post_processor: null }));
  for (const name of ['tiny-bert', 'tiny-sparse']) {
    const holed = join(directory.path, 'embedders', `${name}-holed`);
    cpSync(`${fixtures}${name}`, holed, { recursive: true });
    holeModel(holed, 'king');
  }
  server = await startTestServer({ set: { '--models-dir': directory.path, '--allow-downloads': 'false' } });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const send = (body: object, headers: Record<string, string> = {}) =>
  server.send<EmbedAnswer>('POST', '/ai/v1/embeddings', { model: 'tiny-bert', ...body }, headers);

async function vector(body: object): Promise<number[]> {
  const { body: answer } = await send(body);
  return answer.data[0]?.embedding ?? [];
}

async function refusal(body: object): Promise<[number, string]> {
  const { status, body: answer } = await send(body);
  return [status, String(answer.error)];
}

function expectNear(found: ArrayLike<number>, wanted: readonly number[]): void {
  expect(found.length).toBe(wanted.length);
  for (const [at, value] of wanted.entries()) expect(found[at]).toBeCloseTo(value, 5);
}

describe('POST /ai/v1/embeddings', () => {
  test('names a text of which a model without marks reads nothing, and reads the others', async () => {
    const input = ['a cat', ' ', 'the king'];
    expect(await refusal({ model: 'bare', input })).toEqual([
      400,
      expect.stringContaining('input 1: the input has no tokens'),
    ]);
    const { status, body } = await send({ model: 'bare', input, error_policy: 'continue' });
    expect([status, body.data.length, body.errors]).toMatchObject([200, 2, [{ index: 1, code: 'invalid_request' }]]);
  });

  test.each(['tiny-bert-holed', 'tiny-sparse-holed'])(
    'names a text of which %s makes numbers that are not finite, and keeps the others',
    async (model) => {
      const input = ['a cat', 'the king', 'a dog'];
      expect(await refusal({ model, input })).toEqual([
        500,
        'inference_failed: input 1: the model gave a vector with numbers that are not finite',
      ]);
      const { status, body } = await send({ model, input, error_policy: 'continue' });
      expect([status, body.errors]).toMatchObject([200, [{ index: 1, code: 'inference_failed' }]]);
      expect(body.data.map(({ index, embedding }) => [index, JSON.stringify(embedding).includes('null')])).toEqual([
        [0, false],
        [2, false],
      ]);
      const beside = await Promise.all([input, ['a cat'], ['a dog']].map((texts) => send({ model, input: texts })));
      expect(beside.map((each) => each.status)).toEqual([500, 200, 200]);
    },
  );

  test('says what the model says elsewhere, alone and among longer texts', async () => {
    const { status, headers, body } = await send({ input: dense.text });
    expect(status).toBe(200);
    expectNear(body.data[0]?.embedding ?? [], dense.mean_pooled);
    expect(body).toMatchObject({
      object: 'list',
      model: 'tiny-bert',
      usage: { prompt_tokens: 8, total_tokens: 8 },
      errors: [],
      summary: { total: 1, succeeded: 1, failed: 0 },
    });
    expect(headers.get('server-timing')).toContain('inference;dur=');
    const texts = Array.from({ length: 70 }, (_, at) => 'the cat sat on the mat . '.repeat(at % 7));
    texts[0] = 'a';
    for (let at = 0; at < texts.length; at += 7) texts[at] = dense.text;
    const many = await send({ input: texts });
    expect(many.body.data.map(({ index }) => index)).toEqual([...texts.keys()]);
    for (let at = 0; at < texts.length; at += 7) expectNear(many.body.data[at]?.embedding ?? [], dense.mean_pooled);
    expect(many.body.usage.prompt_tokens).toBe(texts.reduce((sum, text) => sum + 2 + text.trim().split(' ').length, 0));
  });

  test('takes tokens and content parts, under both names of the route', async () => {
    const accept_token_input = 'tiny-bert';
    expectNear(await vector({ input: dense.ids, accept_token_input }), dense.mean_pooled);
    expectNear(await vector({ input: [dense.ids, [2, 3]], accept_token_input }), dense.mean_pooled);
    expectNear(await vector({ input: [{ type: 'text', text: dense.text }] }), dense.mean_pooled);
    expectNear(await vector({ input: { type: 'text', text: dense.text } }), dense.mean_pooled);
    const other = await server.send<EmbedAnswer>('POST', '/ai/v1/embed', { model: 'tiny-bert', input: [dense.text] });
    expectNear(other.body.data[0]?.embedding ?? [], dense.mean_pooled);
  });

  test('refuses tokens unless they are said to be of its own vocabulary', async () => {
    const told = /set "accept_token_input" to "tiny-bert"/;
    for (const input of [dense.ids, [dense.ids], ['a', dense.ids]]) {
      expect(await refusal({ input })).toEqual([400, expect.stringMatching(told)]);
      expect(await refusal({ input, accept_token_input: 'cl100k_base' })).toEqual([400, expect.stringMatching(told)]);
    }
    const { body } = await send({ input: ['a', [2, 3]], error_policy: 'continue' });
    expect(body.errors).toMatchObject([{ index: 1, message: expect.stringMatching(told) }]);
  });

  test('refuses a member that is nearly one of its own, and ignores others', async () => {
    expect(await refusal({ input: 'a', dimension: 8 })).toEqual([
      400,
      'invalid_request: unknown member "dimension"; did you mean "dimensions"?',
    ]);
    expect((await send({ input: 'a', user: 'me', service_tier: 'auto' })).status).toBe(200);
  });

  test('what people write never becomes a special token', async () => {
    const { body } = await send({ input: ['[SEP]', 'x'] });
    // "[", "s", "##e", "##p", "]" inside the template's two.
    expect(body.usage.prompt_tokens).toBe(7 + 3);
  });

  test('sparse models answer ascending indices and positive weights', async () => {
    const { body } = await send({ model: 'tiny-sparse', input: [sparse.text, 'a'] });
    const { indices, values } = body.data[0]?.embedding ?? { indices: [], values: [] };
    expect(indices).toEqual(Object.keys(sparse.weights).map(Number));
    expectNear(values, Object.values<number>(sparse.weights));
    expect(await refusal({ model: 'tiny-sparse', input: 'a', encoding_format: 'base64' })).toEqual([
      400,
      'invalid_request: sparse vectors have no base64 form; "encoding_format" has to be float',
    ]);
    expect((await refusal({ model: 'tiny-sparse', input: 'a', dimensions: 4 }))[0]).toBe(400);
  });

  test('a form that sparse vectors do not have is refused before the model is loaded', async () => {
    const asked = { model: 'unread-sparse', input: 'a' };
    const answers = [
      await send({ ...asked, encoding_format: 'base64' }),
      await send(asked, { accept: 'application/octet-stream' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400]);
    expect((await server.send('GET', '/v1/models/unread-sparse')).body.loaded).toBe(false);
  });

  test('shortens vectors and scales them again', async () => {
    const short = await vector({ input: dense.text, dimensions: 8 });
    const kept: number[] = dense.mean_pooled.slice(0, 8);
    const length = Math.hypot(...kept);
    expectNear(
      short,
      kept.map((value) => value / length),
    );
    expect(await refusal({ input: 'a', dimensions: 33 })).toEqual([
      400,
      'invalid_request: "dimensions" is 33; the model makes vectors of 32 numbers',
    ]);
  });

  test('puts the prefix of the task, or the instruction, in front', async () => {
    const model = 'prefixed';
    const plain = await vector({ input: 'the king runs' });
    expectNear(await vector({ model, input: 'runs', task_type: 'RETRIEVAL_QUERY' }), plain);
    expectNear(await vector({ model, input: 'runs', input_type: 'search_query' }), plain);
    expectNear(await vector({ model, input: 'the king runs', task_type: 'CLUSTERING' }), plain);
    expectNear(await vector({ input: 'runs', instruction: 'the king' }), plain);
    const inside = await vector({ input: 'a fox . runs' });
    expectNear(await vector({ model, input: 'runs', instruction: 'fox', task_type: 'RETRIEVAL_QUERY' }), inside);
    expect((await refusal({ model, input: [2, 5, 3], accept_token_input: model, input_type: 'query' }))[1]).toContain(
      'takes no prefix',
    );
    expect((await refusal({ input: 'a', input_type: 'query', task_type: 'CLUSTERING' }))[1]).toContain('give one');
  });

  test('refuses what is too long with both counts, or cuts it where it is asked to', async () => {
    const long = 'the '.repeat(100);
    expect(await refusal({ input: ['a', long] })).toEqual([
      400,
      "context_length_exceeded: input 1: this model's maximum context length is 64 tokens, but the input has 102",
    ]);
    const end = `${'the '.repeat(62)}fox`;
    const cut = await send({ input: end, truncate: true });
    expect(cut.body.usage.prompt_tokens).toBe(64);
    expectNear(cut.body.data[0]?.embedding ?? [], await vector({ input: 'the '.repeat(62) }));
    expectNear(await vector({ input: end, truncate: 'start' }), await vector({ input: `${'the '.repeat(61)}fox` }));
  });

  test('takes null for what is left out', async () => {
    const nothing = { dimensions: null, encoding_format: null, task_type: null, input_type: null, instruction: null };
    const { status, body } = await send({ input: 'the fox', ...nothing, truncate: null, error_policy: null });
    expect(status).toBe(200);
    expectNear(body.data[0]?.embedding ?? [], await vector({ input: 'the fox' }));
  });

  test('fails as a whole, or lists what failed', async () => {
    const input = ['a', '', 'the '.repeat(100), [1, 500], 'b'];
    expect(await refusal({ input, accept_token_input: 'tiny-bert' })).toEqual([
      400,
      'invalid_request: input 1: the input is empty',
    ]);
    const { status, body } = await send({ input, accept_token_input: 'tiny-bert', error_policy: 'continue' });
    expect([status, body.summary]).toEqual([200, { total: 5, succeeded: 2, failed: 3 }]);
    expect(body.data.map(({ index }) => index)).toEqual([0, 4]);
    expect(body.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, 'invalid_request'],
      [2, 'context_length_exceeded'],
      [3, 'invalid_request'],
    ]);
    const none = await send({ input: ['', ''], error_policy: 'continue' });
    expect(none.body.summary).toEqual({ total: 2, succeeded: 0, failed: 2 });
  });

  test('refuses what it does not know, with a sentence', async () => {
    const cases: [object, number, string][] = [
      [{ input: [] }, 400, 'is an empty array'],
      [{ input: '' }, 400, 'the input is empty'],
      [{ input: 'a', encoding_format: 'hex' }, 400, 'encoding_format'],
      [{ input: 'a', task_type: 'GUESSING' }, 400, 'task_type'],
      [{ input: 'a', truncate: 'middle' }, 400, 'truncate'],
      [{ input: 'a', model: '' }, 400, 'model'],
      [{ input: 'a', model: 'tiny-bort' }, 404, 'Did you mean "tiny-bert"?'],
      [{ input: [{ type: 'image_url', image_url: 'data:image/png;base64,AAAA' }] }, 400, 'invalid_media: input[0]'],
      [{ input: new Array(100_000).fill('a') }, 400, `may have ${limits.inferenceTextsMax}`],
      [{ input: 'a'.repeat(limits.inferenceTextCharsMax + 1) }, 400, 'characters'],
    ];
    for (const [body, status, words] of cases) {
      const [found, error] = await refusal(body);
      expect([found, error.includes(words) ? words : error]).toEqual([status, words]);
    }
  });

  test('packs vectors when it is asked to', async () => {
    const response = await fetch(`${server.url}/ai/v1/embeddings`, {
      method: 'POST',
      headers: { accept: 'application/octet-stream' },
      body: JSON.stringify({ model: 'tiny-bert', input: ['a', dense.text] }),
    });
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    const bytes = await response.arrayBuffer();
    const view = new DataView(bytes);
    expect([view.getBigUint64(0, true), view.getBigUint64(8, true), bytes.byteLength]).toEqual([2n, 32n, 16 + 256]);
    expectNear(new Float32Array(bytes, 16 + 128), dense.mean_pooled);
  });
});

describe('the OpenAI client', () => {
  test('embeds with its default, with floats and with tokens', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/ai/v1`, apiKey: 'none', maxRetries: 0 });
    const base = await client.embeddings.create({ model: 'tiny-bert', input: dense.text });
    expectNear(base.data[0]?.embedding ?? [], dense.mean_pooled);
    const raw = await client.embeddings.create({ model: 'tiny-bert', input: dense.text, encoding_format: 'base64' });
    const text = raw.data[0]?.embedding as unknown as string;
    expect(Buffer.from(text, 'base64').readFloatLE(0)).toBeCloseTo(dense.mean_pooled[0], 5);
    const floats = await client.embeddings.create({
      model: 'tiny-bert',
      input: [dense.text],
      encoding_format: 'float',
    });
    expectNear(floats.data[0]?.embedding ?? [], dense.mean_pooled);
    const request = { model: 'tiny-bert', input: [dense.ids], dimensions: 8, accept_token_input: 'tiny-bert' };
    const tokens = await client.embeddings.create(request);
    expect(tokens.data[0]?.embedding).toHaveLength(8);
    const failed = await client.embeddings.create({ model: 'gone', input: 'a' }).catch((error: unknown) => error);
    expect(String(failed)).toContain('model_not_found');
  });
});
