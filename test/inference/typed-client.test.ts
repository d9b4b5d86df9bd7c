import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect, type SundewClient } from '../../src/client/client.ts';
import { type EmbeddedDatabase, open } from '../../src/embedded.ts';
import { until } from '../support/fault/until.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const models = Bun.fileURLToPath(new URL('../fixtures/models', import.meta.url));
const directory = new TemporaryDirectory();

let server: TestServer;
let embedded: EmbeddedDatabase;
beforeAll(async () => {
  server = await startTestServer({
    set: { '--models-dir': models, '--allow-downloads': 'false' },
    environment: { SUNDEW__INFERENCE__THREADS: '1' },
  });
  const inference = { models_dir: models, allow_downloads: false, threads: 1 };
  embedded = await open(directory.path, { settings: { inference, storage: { reserve: 0 } } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await embedded.close();
  directory[Symbol.dispose]();
});

const asked = (content: string) => ({
  model: 'chain',
  messages: [{ role: 'user' as const, content }],
  temperature: 0,
});

describe.each([
  ['over HTTP', (): SundewClient => connect(server.url)],
  ['in this process', (): SundewClient => embedded],
] as const)('a client %s', (_name, clientOf) => {
  test('chats, whole and as it is generated', async () => {
    const { inference } = clientOf();
    const whole = await inference.chat(asked('hello'));
    expect(whole.choices[0]?.message.content).toBe(' from the chain.');
    const pieces: string[] = [];
    let tokens: number | undefined;
    for await (const { choices, usage } of inference.chatStream(asked('hello'))) {
      pieces.push(choices[0]?.delta.content ?? '');
      tokens = usage?.completion_tokens ?? tokens;
    }
    expect([pieces.join(''), tokens]).toEqual([' from the chain.', 4]);
    expect(pieces.filter((piece) => piece !== '').length).toBeGreaterThan(1);
    const gone = inference.chatStream({ ...asked('hello'), model: 'gone' }).next();
    expect(await gone.catch((error: unknown) => error)).toMatchObject({ code: 'model_not_found', status: 404 });
  });

  test('frees the model when it ends a stream, or aborts it', async () => {
    const db = clientOf();
    const endless = { ...asked('forever'), max_tokens: 4_000 };
    const free = async () => {
      const { handler } = embedded;
      const answer =
        db === embedded ? await handler(new Request('http://any/v1/models')) : await fetch(`${server.url}/v1/models`);
      const of = (name: string) => answer.headers.get(`x-ratelimit-${name}-requests`);
      return of('remaining') === of('limit');
    };
    for await (const { choices } of db.inference.chatStream(endless)) if (choices[0]?.delta.content) break;
    await until(free);
    const leaving = new AbortController();
    const stream = db.inference.chatStream(endless, { signal: leaving.signal });
    await stream.next();
    leaving.abort(new Error('enough'));
    const rest = async () => {
      for await (const _ of stream);
    };
    expect(String(await rest().catch((error: unknown) => error))).toContain('enough');
    await until(free);
  });

  test('embeds and reranks', async () => {
    const { inference } = clientOf();
    const [vector, ...others] = await inference.embed({ model: 'tiny-bert', input: 'the cat' });
    expect([vector?.length, others.length]).toEqual([32, 0]);
    const prompts = ['a cat sat', 'the mat'];
    expect(await inference.rerank({ model: 'tiny-cross', query: 'cat', prompts })).toHaveLength(2);
  });
});
