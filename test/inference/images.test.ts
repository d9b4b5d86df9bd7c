import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { blue, colouredImage, green, red } from '../support/files/coloured-image.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));

interface Answer extends Record<string, unknown> {
  data: { index: number; embedding: number[]; score: number }[];
}

let server: TestServer;
let images: { red: string; blue: string; half: string };

beforeAll(async () => {
  server = await startTestServer({ set: { '--models-dir': fixtures, '--allow-downloads': 'false' } });
  images = {
    red: await colouredImage([red, red, red, red]),
    blue: await colouredImage([blue, blue, blue, blue]),
    half: await colouredImage([red, green, red, green], 64),
  };
});
afterAll(async () => await server[Symbol.asyncDispose]());

const send = (path: string, body: object) => server.send<Answer>('POST', `/ai/v1/${path}`, body);
const image = (url: string) => ({ type: 'image_url', image_url: { url } });
/** The red image, whose header claims to be far larger. */
const hugePng = (): string => {
  const bytes = Buffer.from(images.red.slice('data:image/png;base64,'.length), 'base64');
  bytes.writeUInt32BE(60_000, 16);
  bytes.writeUInt32BE(Bun.hash.crc32(bytes.subarray(12, 29)), 29);
  return `data:image/png;base64,${bytes.toString('base64')}`;
};
const rounded = (values: readonly number[]) => values.map((value) => Number(value.toFixed(2)));

describe('POST /ai/v1/embeddings with images', () => {
  test('puts words and images into one space, in the order of the input', async () => {
    const input = [image(images.red), { type: 'text', text: 'a red dog' }, image(images.half), 'a blue king'];
    const { status, body } = await send('embeddings', { model: 'tiny-colours', input });
    expect(status).toBe(200);
    expect(body.data.map(({ embedding }) => rounded(embedding))).toEqual([
      [1, 0, 0],
      [1, 0, 0],
      [0.71, 0.71, 0],
      [0, 0, 1],
    ]);
    const plain = await send('embeddings', { model: 'tiny-colours', input: [images.red] });
    const parts = await send('embeddings', { model: 'tiny-colours', input: [image(images.red)] });
    expect(plain.body.data).toEqual(parts.body.data);
    const alone = await send('embeddings', { model: 'tiny-colours', input: [image(images.half)], dimensions: 2 });
    expect(rounded(alone.body.data[0]?.embedding ?? [])).toEqual([0.71, 0.71]);
  });

  test('names what is wrong with an image', async () => {
    const bad = { model: 'tiny-colours', input: ['a', image('data:image/png;base64,AAAA')] };
    const { status, body } = await send('embeddings', bad);
    expect([status, String(body.error)]).toEqual([400, expect.stringContaining('invalid_media: input[1]')]);
    const cut = await send('embeddings', { ...bad, input: [image('data:image/png;base64,iVBORw0KGgo=')] });
    expect(String(cut.body.error)).toBe('invalid_media: input[0] is not an image that can be read');
    const sound = { type: 'input_audio', input_audio: { data: btoa('RIFF....WAVEfmt '), format: 'wav' } };
    const heard = await send('embeddings', { model: 'tiny-colours', input: [sound] });
    expect([heard.status, heard.body.reason]).toEqual([400, 'invalid_input']);
  });
});

describe('a bad image among others', () => {
  const bytes = (base64: string) => image(`data:image/png;base64,${base64}`);

  test('is an error of its own where the others are to go on', async () => {
    const cut = images.red.slice('data:image/png;base64,'.length, -40);
    const input = [
      'red',
      bytes('AAAA'),
      image(images.blue),
      image('http://127.0.0.1/x.png'),
      bytes(cut),
      image('data:nothing'),
      image(hugePng()),
    ];
    const { status, body } = await send('embeddings', { model: 'tiny-colours', input, error_policy: 'continue' });
    expect([status, body.summary]).toEqual([200, { total: 7, succeeded: 2, failed: 5 }]);
    expect(body.data.map(({ index, embedding }) => [index, rounded(embedding)])).toEqual([
      [0, [1, 0, 0]],
      [2, [0, 0, 1]],
    ]);
    expect(body.errors).toMatchObject([
      { index: 1, code: 'invalid_media', status: 400, retryable: false },
      { index: 3, code: 'invalid_media', status: 400 },
      { index: 4, code: 'invalid_media', status: 400 },
      { index: 5, code: 'invalid_media', status: 400 },
      { index: 6, code: 'media_too_large', status: 413 },
    ]);
    const blind = await send('embeddings', {
      model: 'tiny-bert',
      input: ['a', image(images.red)],
      error_policy: 'continue',
    });
    expect(blind.body.errors).toMatchObject([{ index: 1, code: 'model_not_supported' }]);
  });

  test('that is too large is 413 for every model, before one is asked', async () => {
    const { status } = await send('embeddings', { model: 'tiny-bert', input: [image(hugePng())] });
    expect(status).toBe(413);
    const documents = [{ content: [image(hugePng())] }];
    expect((await send('rerank_multimodal', { model: 'tiny-cross', query: 'red', documents })).status).toBe(413);
  });
});

describe('POST /ai/v1/rerank_multimodal with images', () => {
  test('late interaction finds the best part of a page for every word', async () => {
    const documents = [
      { content: [image(images.red)] },
      { content: [image(images.blue)] },
      { content: [image(images.half)] },
      { content: [{ type: 'text', text: 'a red king' }, image(images.blue)] },
      { content: 'a red dog' },
    ];
    const { status, body } = await send('rerank_multimodal', { model: 'tiny-pages', query: 'red fox', documents });
    expect(status).toBe(200);
    // One for each of the two words that is there.
    expect(rounded(body.data.map(({ score }) => score))).toEqual([1, 0, 2, 1, 1]);
  });

  test('a model that reads text only says so', async () => {
    const body = { model: 'tiny-cross', query: 'red', documents: [{ content: [image(images.red)] }] };
    const refused = await send('rerank_multimodal', body);
    expect([refused.status, refused.body.message]).toEqual([
      400,
      'documents[0].content[0]: the model "tiny-cross" reads text only',
    ]);
  });
});
