import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { blue, colouredImage, green, red } from '../support/files/coloured-image.ts';
import { tone, wavFile } from '../support/files/wav-file.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ set: { '--models-dir': fixtures, '--allow-downloads': 'false' } });
});
afterAll(async () => await server[Symbol.asyncDispose]());

const send = (path: string, body: object) => server.send('POST', `/ai/v1/${path}`, body);

async function expectRefusals(path: string, cases: readonly [object, number, string][]): Promise<void> {
  for (const [wrong, status, words] of cases) {
    const { status: found, body } = await send(path, wrong);
    expect([found, String(body.error).includes(words) ? words : body.error]).toEqual([status, words]);
  }
}

describe('POST /ai/v1/rewrite', () => {
  test('writes until the model ends, or as much as is wanted', async () => {
    const inputs = ['the cat runs fast .', 'a king', ''];
    const { status, body } = await send('rewrite', { model: 'tiny-rewriter', inputs });
    expect([status, body]).toEqual([
      200,
      {
        object: 'list',
        data: ['the dog runs fast.', 'a queen', ''].map((text, index) => ({ object: 'rewrite', index, texts: [text] })),
        model: 'tiny-rewriter',
        usage: { prompt_tokens: 13, completion_tokens: 7, total_tokens: 20, cached_prompt_tokens: 0 },
      },
    ]);
    const short = await send('rewrite', { model: 'tiny-rewriter', inputs, max_tokens: 2 });
    expect(short.body.data).toMatchObject([{ texts: ['the dog'], truncated: true }, { texts: ['a queen'] }, {}]);
    expect(Object.keys((short.body.data as object[])[2] ?? {})).not.toContain('truncated');
  });

  test('refuses what it cannot do', () =>
    expectRefusals('rewrite', [
      [{ model: 'gone', inputs: ['a'] }, 404, 'no model named "gone" is installed among the rewriters'],
      [{ model: 'tiny-rewriter', inputs: [] }, 400, 'inputs'],
      [{ model: 'tiny-rewriter', inputs: ['the '.repeat(40)] }, 400, 'input 0 has 42 tokens; the model takes 32'],
    ]));
});

describe('POST /ai/v1/read', () => {
  test('reads images in every form that they come in', async () => {
    const url = await colouredImage([red, blue, green, red], 64);
    const base64 = url.slice(url.indexOf(',') + 1);
    const images = [
      { url },
      { type: 'image_url', image_url: { url } },
      { type: 'media', data: base64, mime_type: 'image/png' },
    ];
    const { status, body } = await send('read', { model: 'tiny-reader', images });
    expect(status).toBe(200);
    expect(body.data).toEqual(
      images.map((_, index) => ({
        object: 'read',
        index,
        text: 'red blue brown red',
        fields: {},
        regions: [],
      })) as never,
    );
    const one = await send('read', { model: 'tiny-reader', images: [{ url }], max_tokens: 1 });
    expect(one.body.data).toMatchObject([{ text: 'red', truncated: true }]);
  });

  test('refuses what it cannot read', () =>
    expectRefusals('read', [
      [{ model: 'gone', images: [{ url: 'data:image/png;base64,AAAA' }] }, 404, 'among the readers'],
      [{ model: 'tiny-reader', images: [] }, 400, 'images'],
      [{ model: 'tiny-reader', images: [{ url: 'data:image/png;base64,AAAA' }] }, 400, 'invalid_media: images[0]'],
      [{ model: 'tiny-reader', images: [{ url: 'file:///etc/passwd' }] }, 400, 'invalid_media'],
    ]));
});

describe('POST /ai/v1/transcribe', () => {
  const rate = 16_000;
  const base64 = (...parts: Float32Array[]) => {
    const all = new Float32Array(parts.flatMap((part) => [...part]));
    return Buffer.from(wavFile(all, rate)).toString('base64');
  };
  const hear = (audio: string, language?: string) => send('transcribe', { model: 'tiny-ear', audio, language });

  test('writes down what it hears, second by second, in the language that it is told or guesses', async () => {
    const [low, high, silence] = [tone(300, 1, rate), tone(3_000, 1, rate), new Float32Array(rate)];
    const { status, body } = await hear(base64(low, high, silence, low));
    expect([status, body]).toEqual([
      200,
      {
        object: 'list',
        data: [{ object: 'transcription', index: 0, text: 'red blue red', language: 'en' }],
        model: 'tiny-ear',
        usage: { prompt_tokens: 0, completion_tokens: 3, total_tokens: 3, cached_prompt_tokens: 0 },
      },
    ]);
    const guessed = await hear(`data:audio/wav;base64,${base64(high)}`);
    expect(guessed.body.data).toEqual([{ object: 'transcription', index: 0, text: 'blue', language: 'de' }] as never);
    const told = await hear(base64(high), 'en-GB');
    expect(told.body.data).toEqual([{ object: 'transcription', index: 0, text: 'blue', language: 'en' }] as never);
  });

  test('refuses what it cannot hear', () =>
    expectRefusals('transcribe', [
      [{ model: 'whisper', audio: 'AAAA' }, 404, 'among the transcribers'],
      [{ model: 'tiny-ear', audio: 'AAAA' }, 400, 'invalid_media'],
      [{ model: 'tiny-ear', audio: btoa('ID3 and so on') }, 400, 'sounds are read from WAV files'],
      [{ model: 'tiny-ear', audio: base64(tone(300, 1, rate)), language: 'fr' }, 400, 'there are en, de'],
    ]));
});
