import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import OpenAI from 'openai';
import { tone, wavFile } from '../support/files/wav-file.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));
const dense = await Bun.file(`${fixtures}embedders/tiny-bert/reference.json`).json();

/** A server of one embedder and one reranker, as servers of a single model are asked. */
let sole: TestServer;
/** A server of several of each. */
let several: TestServer;
const directory = new TemporaryDirectory();

beforeAll(async () => {
  for (const model of ['embedders/tiny-bert', 'rerankers/tiny-cross']) {
    cpSync(`${fixtures}${model}`, join(directory.path, model), { recursive: true });
  }
  // Its token of a language becomes the one of silence.
  const marked = join(directory.path, 'transcribers/marked');
  cpSync(`${fixtures}transcribers/tiny-ear`, marked, { recursive: true });
  const tokenizer = join(marked, 'tokenizer.json');
  writeFileSync(tokenizer, readFileSync(tokenizer, 'utf8').replaceAll('<|de|>', '<|nospeech|>'));
  sole = await startTestServer({ set: { '--models-dir': directory.path, '--allow-downloads': 'false' } });
  several = await startTestServer({ set: { '--models-dir': fixtures, '--allow-downloads': 'false' } });
});
afterAll(async () => {
  await sole[Symbol.asyncDispose]();
  await several[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const query = 'the quick fox';
const documents = ['a cat sat', 'the quick brown fox', 'the mat'];

async function scores(): Promise<number[]> {
  const { body } = await several.send<{ data: { score: number }[] }>('POST', '/ai/v1/rerank', {
    model: 'tiny-cross',
    query,
    prompts: documents,
  });
  return body.data.map(({ score }) => score);
}

/** Places of the documents, the best first. */
const order = (all: number[]) => [...all.keys()].sort((a, b) => (all[b] ?? 0) - (all[a] ?? 0));

describe('/v1 is another name of /ai/v1', () => {
  test('for every route, errors included', async () => {
    const client = new OpenAI({ baseURL: `${sole.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const { data } = await client.embeddings.create({ model: 'tiny-bert', input: dense.text });
    expect(data[0]?.embedding[0]).toBeCloseTo(dense.mean_pooled[0], 5);
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['tiny-bert']);
    expect(await client.models.retrieve('tiny-bert')).toMatchObject({ id: 'tiny-bert', context_length: 64 });
    const gone = await client.embeddings.create({ model: 'gone', input: 'a' }).catch((error: unknown) => error);
    expect(String(gone)).toContain('model_not_found');
    const unknown = await sole.send('GET', '/v1/nothing');
    expect([unknown.status, unknown.body.reason]).toEqual([404, 'not_found']);
    const message = expect.stringMatching(/^not_found: /);
    const error = { message, type: 'invalid_request_error', param: null, code: 'not_found' };
    expect(unknown.body.error).toEqual(error as never);
    // The specification's own address has the specification's shape.
    expect((await sole.send('GET', '/ai/v1/nothing')).body.error).toMatch(/^not_found: /);
  });
});

describe('reranking', () => {
  test('in two forms at once, or with a member of another form, is refused', async () => {
    const asked = { model: 'tiny-cross', query, prompts: documents };
    const others = [{ top_n: 1 }, { return_documents: true }, { max_tokens_per_doc: 1 }, { return_text: true }];
    for (const more of [{ documents }, { texts: documents }, ...others]) {
      const { status, body } = await several.send('POST', '/ai/v1/rerank', { ...asked, ...more });
      expect([more, status, String(body.error)]).toEqual([
        more,
        400,
        expect.stringContaining(Object.keys(more)[0] ?? ''),
      ]);
    }
  });

  test('of documents, as Cohere and Jina have it, answers the best first', async () => {
    const wanted = await scores();
    for (const path of ['/rerank', '/v1/rerank', '/v2/rerank', '/ai/v1/rerank']) {
      const { status, body } = await several.send('POST', path, { model: 'tiny-cross', query, documents });
      expect([path, status, body.object, body.model]).toEqual([path, 200, 'list', 'tiny-cross']);
      expect(body.results).toEqual(order(wanted).map((index) => ({ index, relevance_score: wanted[index] })));
      expect(body.usage).toEqual({ prompt_tokens: expect.any(Number), total_tokens: expect.any(Number) });
    }
    const asked = {
      query,
      documents: [{ text: 'a cat sat' }, ...documents.slice(1)],
      top_n: 2,
      return_documents: true,
    };
    const { body } = await sole.send<{ results: object[] }>('POST', '/rerank', asked);
    expect(body.results).toEqual(
      order(wanted)
        .slice(0, 2)
        .map((index) => ({ index, relevance_score: wanted[index], document: { text: documents[index] } })),
    );
  });

  test('of documents reads as many tokens of each as it is told', async () => {
    const results = async (model: string, texts: string[], max_tokens_per_doc?: number) => {
      const asked = { model, query, documents: texts, ...(max_tokens_per_doc && { max_tokens_per_doc }) };
      return (await several.send<{ results: object[] }>('POST', '/v2/rerank', asked)).body.results;
    };
    for (const model of ['tiny-cross', 'tiny-late', 'tiny-cross-gguf']) {
      const cut = await results(model, ['the cat sat on the mat', 'a dog'], 1);
      expect(cut).toEqual(await results(model, ['the', 'a']));
      expect(cut).not.toEqual(await results(model, ['the cat sat on the mat', 'a dog']));
    }
  });

  test('of texts, as Text Embeddings Inference has it, answers a list', async () => {
    const wanted = await scores();
    const plain = await sole.send('POST', '/rerank', { query, texts: documents });
    expect(plain.body).toEqual(order(wanted).map((index) => ({ index, score: wanted[index] })) as never);
    const { body } = await sole.send<{ text: string }[]>('POST', '/rerank', {
      query,
      texts: documents,
      return_text: true,
    });
    expect(body.map(({ text }) => text)).toEqual(order(wanted).map((index) => documents[index] ?? ''));
  });

  test('refuses what it cannot do, by name', async () => {
    const cases: [object, number, string][] = [
      [{ query, documents }, 400, 'member "model" is missing; the rerankers are "tiny-cross", '],
      [{ query, texts: documents, raw_scores: true }, 400, 'raw_scores'],
      [{ model: 'tiny-cross', query, documents, top_n: 0 }, 400, 'top_n'],
      [{ model: 'tiny-cross', query, documents, return_document: true }, 400, 'did you mean "return_documents"?'],
      [{ model: 'tiny-cross', query, documents, max_chunks_per_doc: 2 }, 400, 'use max_tokens_per_doc'],
      [{ model: 'tiny-cross', query, documents, raw_scores: true }, 400, '"raw_scores" is for "texts"'],
      [{ model: 'tiny-cross', query, documents: [] }, 400, 'documents'],
      [{ model: 'gone', query, documents }, 404, 'model_not_found'],
    ];
    for (const [body, status, words] of cases) {
      const { status: found, body: answer } = await several.send('POST', '/rerank', body);
      expect([found, String(answer.error).includes(words) ? words : answer.error]).toEqual([status, words]);
    }
  });
});

describe('Text Embeddings Inference', () => {
  test('/embed answers bare vectors, for one text and for several', async () => {
    for (const inputs of [dense.text, [dense.text]]) {
      const { status, body } = await sole.send<number[][]>('POST', '/embed', { inputs });
      expect([status, body.length, body[0]?.length]).toEqual([200, 1, 32]);
      for (const [at, value] of dense.mean_pooled.entries()) expect(body[0]?.[at]).toBeCloseTo(value, 5);
    }
    const short = await sole.send<number[][]>('POST', '/embed', { inputs: ['a', 'b'], dimensions: 8, truncate: true });
    expect(short.body.map(({ length }) => length)).toEqual([8, 8]);
    const open = await sole.send('POST', '/embed', { model: 'tiny-bert', input: dense.text });
    expect([open.status, open.body.object]).toEqual([200, 'list']);
  });

  test('/embed refuses what it cannot do, by name', async () => {
    const cases: [object, number, string][] = [
      [{ inputs: 'a' }, 400, 'member "model" is missing; the embedders are'],
      [{ model: 'tiny-sparse', inputs: 'a' }, 400, 'makes sparse vectors'],
      [{ model: 'tiny-bert', inputs: 'a', normalize: false }, 400, 'normalize'],
      [{ model: 'tiny-bert', inputs: 'a', prompt_name: 'query' }, 400, 'prompt_name'],
      [{ model: 'tiny-bert', inputs: 'the '.repeat(100) }, 400, 'context_length_exceeded'],
      [{ model: 'tiny-bert', inputs: [] }, 400, 'inputs'],
    ];
    for (const [body, status, words] of cases) {
      const { status: found, body: answer } = await several.send('POST', '/embed', body);
      expect([found, String(answer.error).includes(words) ? words : answer.error]).toEqual([status, words]);
    }
  });

  test('/info names the model and its limits', async () => {
    expect((await sole.send('GET', '/info')).body).toEqual({
      model_id: 'tiny-bert',
      model_type: { embedding: { pooling: 'mean' } },
      max_input_length: 64,
      max_concurrent_requests: 64,
      max_client_batch_size: 2_048,
      version: expect.any(String),
    });
    expect((await several.send('GET', '/info')).status).toBe(400);
  });
});

describe('tokens', () => {
  test('of an embedder, with and without those around a text, and back', async () => {
    for (const path of ['/tokenize', '/v1/tokenize', '/ai/v1/tokenize']) {
      const { body } = await several.send('POST', path, { model: 'tiny-bert', prompt: dense.text });
      expect(body).toEqual({
        model: 'tiny-bert',
        count: dense.ids.length,
        max_model_len: 64,
        tokens: dense.ids,
        token_strs: null,
      });
    }
    const plain = { model: 'tiny-bert', content: dense.text, add_special: false, return_token_strs: true };
    const { body } = await several.send('POST', '/tokenize', plain);
    expect([body.tokens, (body.token_strs as string[]).slice(0, 2)]).toEqual([
      dense.ids.slice(1, -1),
      dense.text.toLowerCase().split(' ').slice(0, 2),
    ]);
    const back = await several.send('POST', '/detokenize', { model: 'tiny-bert', tokens: dense.ids });
    expect(back.body).toMatchObject({ model: 'tiny-bert', prompt: back.body.content });
    expect(String(back.body.prompt).split(' ').slice(0, 2)).toEqual(dense.text.toLowerCase().split(' ').slice(0, 2));
  });

  test('of a generator are those that its answers are counted in, and text comes back whole', async () => {
    const content = 'count to three 🎉 <|im_end|>';
    const { body } = await several.send<{ tokens: number[]; count: number }>('POST', '/tokenize', {
      model: 'chain',
      content,
    });
    expect(body.count).toBe(body.tokens.length);
    const back = await several.send('POST', '/detokenize', { model: 'chain', tokens: body.tokens });
    expect(back.body.content).toBe(content);
  });

  test('as Text Embeddings Inference has them', async () => {
    const { body } = await several.send<{ id: number; text: string; special: boolean }[][]>('POST', '/tokenize', {
      model: 'tiny-bert',
      inputs: [dense.text, 'a'],
    });
    expect(body.map((each) => each.map(({ id }) => id))[0]).toEqual(dense.ids);
    expect(body[1]).toEqual([
      { id: dense.ids[0], text: '[CLS]', special: true },
      { id: expect.any(Number), text: 'a', special: false },
      { id: dense.ids.at(-1), text: '[SEP]', special: true },
    ]);
  });

  test('are refused by name', async () => {
    const cases: [string, object, number, string][] = [
      ['/tokenize', { prompt: 'a' }, 400, 'member "model" is missing'],
      ['/tokenize', { model: 'tiny-bert' }, 400, 'member "prompt" is missing'],
      ['/tokenize', { model: 'gone', prompt: 'a' }, 404, 'model_not_found'],
      ['/detokenize', { model: 'tiny-bert', tokens: [1, 100_000] }, 400, 'the token 100000 is not one of'],
      ['/detokenize', { model: 'tiny-bert', tokens: [-1] }, 400, 'tokens.0'],
    ];
    for (const [path, body, status, words] of cases) {
      const { status: found, body: answer } = await several.send('POST', path, body);
      expect([found, String(answer.error).includes(words) ? words : answer.error]).toEqual([status, words]);
    }
  });
});

describe('speech', () => {
  const rate = 16_000;
  const spoken = wavFile(
    new Float32Array([tone(300, 1, rate), tone(3_000, 1, rate), new Float32Array(rate)].flatMap((part) => [...part])),
    rate,
  );
  const file = () => new File([spoken as Uint8Array<ArrayBuffer>], 'spoken.wav');
  const client = () => new OpenAI({ baseURL: `${several.url}/v1`, apiKey: 'none', maxRetries: 0 });
  const transcribe = (response_format: 'text' | 'srt' | 'vtt') =>
    client().audio.transcriptions.create({ file: file(), model: 'tiny-ear', language: 'en', response_format });

  test('is written down for the OpenAI client, in each of its formats', async () => {
    const { transcriptions } = client().audio;
    const asked = { file: file(), model: 'tiny-ear', language: 'en' };
    expect(await transcriptions.create(asked)).toEqual({
      text: 'red blue',
      usage: { type: 'duration', seconds: 3 },
    });
    expect(await transcriptions.create({ ...asked, response_format: 'verbose_json' })).toMatchObject({
      task: 'transcribe',
      language: 'en',
      duration: 3,
      text: 'red blue',
      // The model hears a second at a time.
      segments: [
        { id: 0, seek: 0, start: 0, end: 1, text: 'red', temperature: 0, tokens: [16], compression_ratio: 3 / 11 },
        { id: 1, seek: 100, start: 1, end: 2, text: 'blue', temperature: 0, tokens: [17], compression_ratio: 4 / 12 },
      ],
    });
    expect(await transcribe('text')).toBe('red blue\n');
    expect(await transcribe('srt')).toBe(
      '1\n00:00:00,000 --> 00:00:01,000\nred\n\n2\n00:00:01,000 --> 00:00:02,000\nblue\n',
    );
    expect(await transcribe('vtt')).toStartWith('WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nred\n');
  });

  test('has segments with the chances of what was heard, and of silence where the model tells it', async () => {
    const segments = async ({ url }: TestServer, model: string) => {
      const { audio } = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
      const asked = { file: file(), model, language: 'en', response_format: 'verbose_json' as const };
      return (await audio.transcriptions.create(asked)).segments ?? [];
    };
    const [red, blue] = await segments(sole, 'marked');
    for (const each of [red, blue]) {
      expect(Math.exp(each?.avg_logprob ?? 1)).toBeWithin(0.01, 1);
      expect(each?.no_speech_prob).toBeWithin(0, 1);
    }
    // The higher tone sounds like the language whose token is the one of silence here.
    expect(blue?.no_speech_prob).toBeGreaterThan(2 * (red?.no_speech_prob ?? 1));
    const [unmarked] = await segments(several, 'tiny-ear');
    expect(unmarked?.avg_logprob).toBeCloseTo(red?.avg_logprob ?? 1, 5);
    expect(Object.keys(unmarked ?? {})).not.toContain('no_speech_prob');
  });

  test('is written down in English by a model that translates', async () => {
    const model = 'tiny-interpreter';
    const { transcriptions, translations } = client().audio;
    expect(await transcriptions.create({ file: file(), model, language: 'de' })).toMatchObject({ text: 'red blue' });
    expect(await translations.create({ file: file(), model })).toMatchObject({ text: 'cat dog' });
    expect(await translations.create({ file: file(), model, response_format: 'verbose_json' })).toMatchObject({
      task: 'translate',
      segments: [{ text: 'cat' }, { text: 'dog' }],
    } as never);
  });

  test('is refused by name where it cannot be done', async () => {
    const { translations, transcriptions } = client().audio;
    const told = async (work: Promise<unknown>) => String(await work.catch((error: unknown) => error));
    expect(await told(translations.create({ file: file(), model: 'tiny-ear' }))).toContain('does not translate it');
    const asked = { file: file(), model: 'tiny-ear' };
    expect(await told(transcriptions.create({ ...asked, model: 'gone' }))).toContain('model_not_found');
    expect(await told(transcriptions.create({ ...asked, prompt: 'names' }))).toContain('prompt:');
    expect(await told(transcriptions.create({ ...asked, temperature: 0.5 }))).toContain('temperature:');
    const granular = { ...asked, response_format: 'verbose_json' as const };
    for (const timestamp_granularities of [['word'], ['word', 'segment']] as ('word' | 'segment')[][]) {
      expect(await told(transcriptions.create({ ...granular, timestamp_granularities }))).toContain('use segment');
    }
    expect(await told(transcriptions.create({ ...asked, include: ['logprobs'] }))).toContain('include:');
    expect(await told(transcriptions.create({ ...asked, known_speaker_names: ['a'] }))).toContain('not told apart');
    const mp3 = new File(['ID3 and so on'], 'a.mp3');
    expect(await told(transcriptions.create({ ...asked, file: mp3 }))).toContain('sounds are read from WAV files');
    const form = await fetch(`${several.url}/v1/audio/transcriptions`, { method: 'POST', body: '{}' });
    expect([form.status, Object(await form.json()).error.message]).toEqual([
      415,
      expect.stringContaining('multipart/form-data'),
    ]);
    const empty = new FormData();
    empty.set('model', 'tiny-ear');
    const bare = await fetch(`${several.url}/v1/audio/transcriptions`, { method: 'POST', body: empty });
    expect([bare.status, Object(await bare.json()).error.message]).toEqual([
      400,
      expect.stringContaining('part "file" is missing'),
    ]);
  });
});
