import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { holeModel } from '../support/files/holed-model.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));
const cross = await Bun.file(`${fixtures}rerankers/tiny-cross/reference.json`).json();
const late = await Bun.file(`${fixtures}rerankers/tiny-late/reference.json`).json();

interface RerankAnswer extends Record<string, unknown> {
  data: { object: string; index: number; score: number }[];
  usage: Record<string, number>;
}

const directory = new TemporaryDirectory();
let server: TestServer;

beforeAll(async () => {
  const rerankers = join(directory.path, 'rerankers');
  cpSync(`${fixtures}rerankers`, rerankers, { recursive: true });
  cpSync(`${fixtures}embedders/tiny-bert`, join(directory.path, 'embedders/tiny-bert'), { recursive: true });
  cpSync(`${fixtures}rerankers/tiny-late`, join(rerankers, 'expanding'), { recursive: true });
  for (const name of ['tiny-cross', 'tiny-late']) {
    cpSync(`${fixtures}rerankers/${name}`, join(rerankers, `${name}-holed`), { recursive: true });
    holeModel(join(rerankers, `${name}-holed`), 'king');
  }
  const file = join(rerankers, 'expanding/config_sentence_transformers.json');
  const config = JSON.parse(readFileSync(file, 'utf8'));
  const { query_length } = late.expanded;
  writeFileSync(file, JSON.stringify({ ...config, query_length, do_query_expansion: true }));
  server = await startTestServer({ set: { '--models-dir': directory.path, '--allow-downloads': 'false' } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const rerank = (body: object, path = 'rerank') =>
  server.send<RerankAnswer>('POST', `/ai/v1/${path}`, { model: 'tiny-cross', query: cross.text, ...body });

describe('POST /ai/v1/rerank', () => {
  test('a cross-encoder answers the chance that its logit says, in the order of the prompts', async () => {
    const { status, body } = await rerank({ prompts: ['a dog', cross.pair, 'the king sat on the mat . '.repeat(4)] });
    expect(status).toBe(200);
    expect(body.data.map(({ object, index }) => [object, index])).toEqual([0, 1, 2].map((at) => ['rerank.score', at]));
    expect(body.data[1]?.score).toBeCloseTo(1 / (1 + Math.exp(-cross.logit)), 5);
    const alone = await rerank({ prompts: [cross.pair] });
    expect(alone.body.data[0]?.score).toBeCloseTo(body.data[1]?.score ?? 0, 5);
    expect(alone.body).toMatchObject({
      object: 'list',
      model: 'tiny-cross',
      usage: { prompt_tokens: 13, completion_tokens: 0, total_tokens: 13, cached_prompt_tokens: 0 },
    });
  });

  test.each(['tiny-cross-holed', 'tiny-late-holed'])(
    'names a text to which %s gives no finite score',
    async (model) => {
      const asked = { model, query: 'a cat' };
      const { status, body } = await rerank({ ...asked, prompts: ['a dog', 'the king'] });
      expect([status, body.error]).toMatchObject([500, expect.stringContaining('text 1 a score that is not finite')]);
      expect((await rerank({ ...asked, prompts: ['a dog', 'a mat'] })).status).toBe(200);
    },
  );

  test('late interaction sums the best matches of the tokens, but for those that are skipped', async () => {
    const { body } = await rerank({ model: 'tiny-late', query: late.query, prompts: late.texts });
    for (const [at, score] of late.scores.entries()) expect(body.data[at]?.score).toBeCloseTo(score, 4);
    expect(body.usage.prompt_tokens).toBe(6 + 9 + 6);
  });

  test('fills queries up with masks where the model was trained so', async () => {
    const { query_length, scores } = late.expanded;
    const { body } = await rerank({ model: 'expanding', query: late.query, prompts: late.texts });
    for (const [at, score] of scores.entries()) expect(body.data[at]?.score).toBeCloseTo(score, 4);
    expect(body.usage.prompt_tokens).toBe(query_length + 9 + 6);
  });

  test('refuses what does not fit with both counts, or cuts the text', async () => {
    for (const model of ['tiny-cross', 'tiny-late']) {
      const long = await rerank({ model, query: 'a', prompts: ['a', 'the '.repeat(100)] });
      expect([long.status, String(long.body.error).split(':')[0]]).toEqual([400, 'context_length_exceeded']);
      expect(long.body.message).toContain(model === 'tiny-cross' ? 'have 104 together' : 'text 1 has 103');
      const cut = await rerank({ model, query: 'a', prompts: ['the '.repeat(100)], truncate: true });
      expect(cut.status).toBe(200);
      const fitting = await rerank({ model, query: 'a', prompts: ['the '.repeat(model === 'tiny-cross' ? 60 : 61)] });
      expect(cut.body.data[0]?.score).toBeCloseTo(fitting.body.data[0]?.score ?? 0, 6);
    }
  });

  test('refuses empty and unknown things', async () => {
    const cases: [object, number, string][] = [
      [{ prompts: [] }, 400, 'prompts'],
      [{ query: '', prompts: ['a'] }, 400, 'query'],
      [{ prompts: 'a' }, 400, 'prompts'],
      [{ model: 'tiny-bert', prompts: ['a'] }, 400, 'among the embedders'],
      [{ prompts: new Array(3_000).fill('a') }, 400, 'it may have'],
    ];
    for (const [wrong, status, words] of cases) {
      const { status: found, body } = await rerank(wrong);
      expect([found, String(body.error).includes(words)]).toEqual([status, true]);
    }
  });
});

const onePixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

describe('POST /ai/v1/rerank_multimodal', () => {
  test('reads the text of documents, and says what it cannot read', async () => {
    const documents = [{ id: 'x', content: cross.pair }, { content: [{ type: 'text', text: cross.pair }] }];
    const { body } = await rerank({ documents }, 'rerank_multimodal');
    const score = 1 / (1 + Math.exp(-cross.logit));
    for (const each of body.data) expect(each.score).toBeCloseTo(score, 5);
    const image = [{ content: [{ type: 'image_url', image_url: { url: onePixel } }] }];
    const refused = await rerank({ documents: image }, 'rerank_multimodal');
    expect([refused.status, refused.body.reason]).toEqual([400, 'invalid_input']);
    expect(refused.body.message).toContain('reads text only');
  });
});
