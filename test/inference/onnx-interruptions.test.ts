import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { fixtureModel, openTestPool, type TestPool } from '../support/inference/inference-pool.ts';

const embedder = fixtureModel('embedders', 'tiny-bert');
const many = { texts: new Array<string>(2_048).fill('the cat sat on the mat . '.repeat(8)), truncate: undefined };
const few = { texts: ['a cat', 'the quick brown fox'], truncate: undefined };

let host: TestPool;

beforeAll(() => {
  host = openTestPool();
});
afterAll(async () => await host[Symbol.asyncDispose]());

const embed = (input: typeof few, signal?: AbortSignal) =>
  host.pool.run(embedder, 'embed', input, signal === undefined ? {} : { signal });

describe('a request for vectors', () => {
  test('that nobody waits for leaves, and what comes behind it does not wait for it', async () => {
    const { dense } = await embed(few);
    const leave = new AbortController();
    const left = embed(many, leave.signal).catch((error: unknown) => error);
    leave.abort(new Error('the client left'));
    expect(String(await left)).toContain('the client left');
    expect((await embed(few)).dense).toEqual(dense);
    // Had the child gone on, it would still owe thousands of texts.
    expect(host.pool.loaded().map(({ inFlight }) => inFlight)).toEqual([0]);
  });

  test('fails with a retryable error when the process is killed, and the next one gets a new process', async () => {
    const { dense } = await embed(few);
    const failed = await host.pool.use(embedder, async (process) => {
      const runs = [process.run('embed', many), process.run('embed', many)];
      process.kill('killed by the test');
      return await Promise.all(runs.map((run) => run.catch((error: unknown) => error)));
    });
    for (const error of failed) expect(error).toMatchObject({ code: 'inference_interrupted', retryable: true });
    expect(host.crashes).toEqual(['killed by the test']);
    expect((await embed(few)).dense).toEqual(dense);
  });
});

describe('many requests at once', () => {
  test('share batches and get their own vectors', async () => {
    const texts = Array.from({ length: 60 }, (_, at) => 'the king runs fast . '.repeat(1 + (at % 5)));
    const alone = await Promise.all(texts.slice(0, 5).map((text) => embed({ texts: [text], truncate: undefined })));
    const together = await Promise.all(texts.map((text) => embed({ texts: [text], truncate: undefined })));
    for (const [at, { dense, tokens }] of together.entries()) {
      const own = alone[at % 5];
      expect(tokens).toEqual(own?.tokens ?? new Uint32Array());
      for (const [column, value] of (dense ?? []).entries()) expect(value).toBeCloseTo(own?.dense?.[column] ?? 9, 5);
    }
  });
});
