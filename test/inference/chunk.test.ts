import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/chunkers/', import.meta.url));

interface ChunkAnswer extends Record<string, unknown> {
  data: { text: string; start_char: number; end_char: number; id: number; index: number }[];
  model: string;
  cache_hit: boolean;
}

const directory = new TemporaryDirectory();
let server: TestServer;

beforeAll(async () => {
  cpSync(fixtures, join(directory.path, 'chunkers'), { recursive: true });
  // A tokenizer that nothing can be made of is noticed when the model is loaded.
  cpSync(`${fixtures}tiny-chunker`, join(directory.path, 'chunkers/broken'), { recursive: true });
  writeFileSync(join(directory.path, 'chunkers/broken/tokenizer.json'), '{"model":{"type":"Guess"}}');
  // Weights that are none are noticed when the models are listed.
  cpSync(`${fixtures}tiny-chunker`, join(directory.path, 'chunkers/damaged'), { recursive: true });
  writeFileSync(join(directory.path, 'chunkers/damaged/onnx/model.onnx'), 'no weights');
  server = await startTestServer({ set: { '--models-dir': directory.path } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const chunk = (body: object) => server.send<ChunkAnswer>('POST', '/ai/v1/chunk', body);
const texts = ({ data }: ChunkAnswer) => data.map(({ text }) => text);

describe('POST /ai/v1/chunk', () => {
  test('cuts by a fixed rule, with places in characters', async () => {
    const text = '🎉 a b c d e.\n\nf g 語';
    const { status, body } = await chunk({ text, config: { model: 'fixed', target_tokens: 8 } });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      object: 'list',
      model: 'fixed',
      cache_hit: false,
      usage: { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 },
    });
    expect(body.data).toEqual([
      { object: 'chunk', index: 0, id: 0, text: '🎉 a b c d e.', start_char: 0, end_char: 12, mime_type: 'text/plain' },
      { object: 'chunk', index: 1, id: 1, text: 'f g 語', start_char: 14, end_char: 19, mime_type: 'text/plain' },
    ] as never);
    const points = [...text];
    for (const each of body.data) expect(points.slice(each.start_char, each.end_char).join('')).toBe(each.text);
  });

  test.each(['fixed_bert', 'fixed_bpe'])('knows the fixed rule as "%s" too, as indexes do', async (model) => {
    const cut = (model: string) => chunk({ text: `${model.length} a b c d`, config: { model, target_tokens: 2 } });
    const { status, body } = await cut(model);
    expect([status, body.model, texts(body)]).toEqual([200, 'fixed', [`${model.length} a`, 'b c', 'd']]);
  });

  test('remembers an answer, by configuration and text', async () => {
    const body = { text: 'remember me', config: { target_tokens: 1 } };
    expect((await chunk(body)).body.cache_hit).toBe(false);
    const again = await chunk(body);
    expect([again.body.cache_hit, texts(again.body)]).toEqual([true, ['remember', 'me']]);
    expect((await chunk({ ...body, config: { target_tokens: 3 } })).body.cache_hit).toBe(false);
    expect((await chunk({ ...body, text: 'remember ME' })).body.cache_hit).toBe(false);
  });

  test('forgets what a model has cut once other files lie under its name', async () => {
    const weights = join(directory.path, 'chunkers/replaced/onnx/model.onnx');
    cpSync(`${fixtures}tiny-chunker`, join(directory.path, 'chunkers/replaced'), { recursive: true });
    const hit = async () => (await chunk({ text: 'a b c', config: { model: 'replaced' } })).body.cache_hit;
    expect([await hit(), await hit()]).toEqual([false, true]);
    utimesSync(weights, 1, 1);
    expect([await hit(), await hit()]).toEqual([false, true]);
    rmSync(join(directory.path, 'chunkers/replaced'), { recursive: true });
    expect((await chunk({ text: 'a b c', config: { model: 'replaced' } })).status).toBe(404);
  });

  test('takes the other spellings, overlap, separator and a bound', async () => {
    const words = 'a b c d e f g h i j';
    const config = { text: { target_tokens: 4, overlap_tokens: 1, separator: '|' } };
    expect(texts((await chunk({ input: words, config })).body)).toEqual(['a b c d', 'd e f g', 'g h i j']);
    expect(texts((await chunk({ text: words, config: config.text })).body)).toEqual(['a b c d', 'd e f g', 'g h i j']);
    const part = { type: 'text', text: words };
    expect(texts((await chunk({ input: part, config: { ...config, max_chunks: 2 } })).body)).toHaveLength(2);
    expect((await chunk({ text: '' })).body.data).toEqual([]);
    expect((await chunk({ text: words })).body.data).toHaveLength(1);
  });

  test('cuts where a model says that a part ends, over texts longer than it reads', async () => {
    const text = `${'the cat sat on the mat '.repeat(9)}! ${'the king runs '.repeat(9)}? a dog .`;
    const config = { model: 'tiny-chunker' };
    const { body } = await chunk({ text, config });
    expect(body.model).toBe('tiny-chunker');
    expect(texts(body).map((each) => each.slice(-6))).toEqual([' mat !', 'runs ?', ' dog .']);
    const bounded = await chunk({ text, config: { ...config, target_tokens: 20 } });
    expect(bounded.body.data.length).toBeGreaterThan(4);
    expect(texts((await chunk({ text, config: { ...config, threshold: 1 } })).body)).toHaveLength(1);
  });

  test('falls back to the fixed rule when a model fails, says so and forgets it', async () => {
    for (const model of ['broken', 'broken', 'damaged']) {
      const { status, body } = await chunk({ text: 'a b', config: { model } });
      expect([status, body.model, body.cache_hit, texts(body)]).toEqual([200, 'fixed', false, ['a b']]);
    }
  });

  test('refuses what it cannot do', async () => {
    const cases: [object, number, string][] = [
      [{}, 400, 'member "text" is missing'],
      [{ text: 'a', input: 'b' }, 400, 'give one'],
      [{ input: { type: 'media', mime_type: 'audio/wav', data: '' } }, 400, 'part of type "media"'],
      [{ text: 'a', config: { model: 'gone' } }, 404, 'among the chunkers'],
      [{ text: 'a', config: { target_tokens: 2, text: { target_tokens: 3 } } }, 400, 'config.target_tokens'],
      [{ text: 'a', config: { target_tokens: 0 } }, 400, 'config.target_tokens'],
      [{ text: 'a', config: { target_tokens: 2_000_000 } }, 400, 'may have'],
      [{ text: 'a', config: { threshold: 2 } }, 400, 'config.threshold'],
    ];
    for (const [wrong, status, words] of cases) {
      const { status: found, body } = await chunk(wrong);
      expect([found, String(body.error).includes(words) ? words : body.error]).toEqual([status, words]);
    }
  });
});
