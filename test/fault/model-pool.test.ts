import { afterEach, describe, expect, test } from 'bun:test';
import { ModelPool, type PoolOptions } from '../../src/model-host/model-pool.ts';
import type { ModelSpec } from '../../src/model-host/model-spec.ts';
import type { InstalledModel } from '../../src/models/installed-model.ts';
import type { ServiceError } from '../../src/protocol/service-error.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { until } from '../support/fault/until.ts';

const entry = Bun.fileURLToPath(new URL('../support/inference/puppet-host.ts', import.meta.url));
const settings = { threads: 1, contextTokensMax: 256, parallelSequences: 1 };
const mebibyte = 1024 * 1024;

interface Story {
  readonly pool: ModelPool;
  readonly clock: FakeClock;
  readonly events: string[];
  /** Models of which it was said that their loading begins, each with the events by then. */
  readonly begun: [model: string, events: number][];
}

const open: ModelPool[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((pool) => pool.stop()));
});

function story(bounds: Partial<PoolOptions> = {}, stallMs = 60_000, hasGpus = false): Story {
  const clock = new FakeClock();
  const events: string[] = [];
  const begun: [string, number][] = [];
  const pool = new ModelPool({
    entry,
    environment: { PATH: process.env.PATH ?? '' },
    clock,
    options: { loadMs: 10_000, stallMs },
    pool: {
      loadedModelsMax: 2,
      memoryBytesMax: 8 * 1024 * mebibyte,
      keepAliveMs: 300_000,
      checkEveryMs: 30_000,
      stuckMs: 15_000,
      ...bounds,
    },
    onLoading: (key) => begun.push([key, events.length]),
    onLoad: (key, _durationMs, { device }) => events.push(hasGpus ? `load ${key} ${device}` : `load ${key}`),
    ...(hasGpus && { onGpuRefused: (key: string) => events.push(`refused ${key}`) }),
    onUnload: (key, reason) => events.push(`unload ${key} ${reason}`),
    onCrash: (key, reason) => events.push(`crash ${key} ${reason.split(':')[0]}`),
  });
  open.push(pool);
  return { pool, clock, events, begun };
}

function spec(name: string, bytes = mebibyte): ModelSpec {
  return { backend: 'onnx', kind: 'embedders', name, bytes, settings };
}

/** Number of the process that answered. */
async function ask(pool: ModelPool, name: string, word = 'hello', signal?: AbortSignal): Promise<number> {
  const input = { texts: [word], truncate: undefined };
  const result = await pool.run(spec(name), 'embed', input, signal === undefined ? {} : { signal });
  return result.dense?.[0] ?? 0;
}

const failure = (code: string) => expect.objectContaining({ code });

describe('a loaded model', () => {
  test('is one process, shared by all requests', async () => {
    const { pool, events } = story();
    const [first, second] = await Promise.all([ask(pool, 'a'), ask(pool, 'a')]);
    expect(first).toBe(second);
    expect(await ask(pool, 'a')).toBe(first);
    expect(first).not.toBe(process.pid);
    expect(events).toEqual(['load embedders/a']);
    expect(pool.isLoaded(spec('a'))).toBe(true);
  });

  test('gets large inputs whole, and so are its answers, many at a time and beside a request that is given up', async () => {
    const { pool } = story();
    const images = Array.from({ length: 24 }, (_, seed) =>
      Uint8Array.from({ length: 150_000 + 1_000 * (seed % 7) }, (_each, at) => (at * 31 + seed) & 0xff),
    );
    const prepare = async (image: Uint8Array) => {
      const input = { image, name: 'it', fit: 'inside', width: 1, height: 1 } as const;
      return (await pool.run(spec('a'), 'prepareImage', input)).data;
    };
    const leaving = new AbortController();
    const given = ask(pool, 'a', 'wait', leaving.signal).catch((error: Error) => error.message);
    for (const _ of [1, 2]) {
      const answers = await Promise.all(images.map(prepare));
      expect(answers).toEqual(images.map((image) => image.slice(0, image.length / 2)));
      leaving.abort(new Error('left'));
    }
    expect(await given).toBe('left');
  });

  test('is told of when its loading begins, before it is loaded', async () => {
    const { pool, events, begun } = story();
    await Promise.all([ask(pool, 'a'), ask(pool, 'a')]);
    expect([begun, events]).toEqual([[['embedders/a', 0]], ['load embedders/a']]);
  });

  test('goes when it was idle for long, and comes back', async () => {
    // The child answers in real time, which this clock does not wait for.
    const { pool, clock, events } = story({}, Number.POSITIVE_INFINITY);
    const first = await ask(pool, 'a');
    await clock.advance(299_000);
    expect(pool.isLoaded(spec('a'))).toBe(true);
    await clock.advance(1_000);
    expect(pool.isLoaded(spec('a'))).toBe(false);
    expect(await ask(pool, 'a')).not.toBe(first);
    expect(events).toEqual(['load embedders/a', 'unload embedders/a idle', 'load embedders/a']);
  });

  test('gives way once other files lie under its name, and finishes its requests', async () => {
    const { pool, events } = story();
    const files = (created: number) => ({ ...spec('a'), model: { created } as InstalledModel });
    const run = async (created: number, word: string, signal = new AbortController().signal) =>
      (await pool.run(files(created), 'embed', { texts: [word], truncate: undefined }, { signal })).dense?.[0];
    const first = await run(1, 'hello');
    expect(await run(1, 'hello')).toBe(first);
    const leaving = new AbortController();
    const waiting = run(1, 'wait', leaving.signal).catch((error: Error) => error.message);
    const second = await run(2, 'hello');
    expect(second).not.toBe(first);
    expect(pool.loaded()).toHaveLength(2);
    leaving.abort(new Error('left'));
    expect(await waiting).toBe('left');
    expect(await run(2, 'hello')).toBe(second);
    expect(events).toEqual(['load embedders/a', 'load embedders/a', 'unload embedders/a replaced']);
    expect(await run(3, 'hello')).not.toBe(second);
    expect(pool.loaded()).toHaveLength(1);
  });

  test('makes room when it is the one that was used longest ago', async () => {
    const { pool, clock, events } = story();
    for (const name of ['a', 'b', 'a', 'c']) {
      await ask(pool, name);
      await clock.advance(1);
    }
    expect(events).toEqual(['load embedders/a', 'load embedders/b', 'unload embedders/b evicted', 'load embedders/c']);
  });

  test('keeps its place while images are prepared', async () => {
    const { pool, events } = story({ loadedModelsMax: 1 });
    await ask(pool, 'a');
    const images = { backend: 'image', settings } as const;
    await pool.run(images, 'embed', { texts: ['x'], truncate: undefined });
    expect([pool.isLoaded(spec('a')), events]).toEqual([true, ['load embedders/a', 'load image-reader']]);
    await ask(pool, 'b');
    expect([pool.loaded().some(({ key }) => key === 'image-reader'), events.at(-2)]).toEqual([
      true,
      'unload embedders/a evicted',
    ]);
  });

  test('is not loaded for the background while another works for somebody', async () => {
    const { pool } = story();
    const leaving = new AbortController();
    const somebody = ask(pool, 'a', 'wait', leaving.signal).catch((error: Error) => error.message);
    const input = { texts: ['hello'], truncate: undefined };
    const nobody = pool.run(spec('b'), 'embed', input, { priority: 'background' });
    await until(async () => pool.loaded().some(({ inFlight }) => inFlight === 1));
    expect(pool.loaded().map(({ key }) => key)).toEqual(['embedders/a']);
    leaving.abort(new Error('left'));
    expect(await somebody).toBe('left');
    expect((await nobody).dense?.[0]).toBeGreaterThan(0);
  });

  test('in use makes no room for as long as another waits', async () => {
    const { pool, clock } = story({ loadedModelsMax: 1 });
    const leaving = new AbortController();
    const working = ask(pool, 'a', 'wait', leaving.signal);
    await until(async () => pool.loaded()[0]?.inFlight === 1);
    const refused = ask(pool, 'b').catch((error: ServiceError) => error.code);
    await clock.advance(10_000);
    expect(await refused).toBe('inference_capacity');
    const input = { texts: ['hello'], truncate: undefined };
    const nobody = pool.run(spec('b'), 'embed', input, { priority: 'background' });
    const held = nobody.catch((error: ServiceError) => error.code);
    await clock.advance(1_000);
    expect((await held) as unknown).toBe('inference_capacity');
    leaving.abort(new Error('gone'));
    expect(working).rejects.toThrow('gone');
  });

  test('in use makes room behind its requests, and takes none while another has waited for long', async () => {
    const { pool, clock, events } = story({ loadedModelsMax: 1 });
    const leaving = new AbortController();
    const working = ask(pool, 'a', 'wait', leaving.signal).catch((error: Error) => error.message);
    await until(async () => pool.loaded()[0]?.inFlight === 1);
    const other = ask(pool, 'b');
    const first = await ask(pool, 'a');
    expect(first).toBeGreaterThan(0);
    await clock.advance(2_000);
    // Others that ask for it now wait behind the one that has waited.
    const late = ask(pool, 'a');
    await clock.advance(2_000);
    leaving.abort(new Error('gone'));
    expect(await working).toBe('gone');
    expect(await other).toBeGreaterThan(0);
    expect(await late).not.toBe(first);
    const [a, b] = ['embedders/a', 'embedders/b'];
    expect(events).toEqual([`load ${a}`, `unload ${a} evicted`, `load ${b}`, `unload ${b} evicted`, `load ${a}`]);
  });

  test('stays within the memory of all', async () => {
    const { pool } = story({ memoryBytesMax: 512 * mebibyte });
    expect(pool.run(spec('a', 600 * mebibyte), 'embed', { texts: ['x'], truncate: undefined })).rejects.toThrow(
      failure('memory_budget_exceeded'),
    );
  });
});

describe('what a request says of the time after it', () => {
  test('holds until another one says something else', async () => {
    const { pool, clock } = story({ keepAliveMs: 20_000 });
    const use = (keepAliveMs?: number) => pool.use(spec('a'), () => Promise.resolve(), { keepAliveMs });
    await use(10_000);
    await clock.advance(9_000);
    await use();
    await clock.advance(9_000);
    expect(pool.isLoaded(spec('a'))).toBe(true);
    await clock.advance(2_000);
    expect(pool.isLoaded(spec('a'))).toBe(false);
    await use(Number.POSITIVE_INFINITY);
    await clock.advance(30_000);
    expect(pool.isLoaded(spec('a'))).toBe(true);
    await use(0);
    await clock.advance(0);
    expect(pool.isLoaded(spec('a'))).toBe(false);
  });
});

describe('a model that nobody waits for any more', () => {
  test('while it still loads is let go, process and all', async () => {
    const { pool, clock, events } = story({ keepAliveMs: 0 });
    const leaving = new AbortController();
    const asked = ask(pool, 'never-loads', 'hello', leaving.signal);
    leaving.abort(new Error('gone'));
    await expect(asked).rejects.toThrow('gone');
    await clock.advance(0);
    await pool.stop();
    // Nothing waits for the end of a load, and nothing was counted as a crash.
    expect(clock.pending).toBe(0);
    expect(events).toEqual([]);
  });
});

describe('a process that goes wrong', () => {
  for (const name of ['dies-loading', 'is-refused']) {
    test(`while it loads (${name}) fails that load alone`, async () => {
      const { pool } = story();
      await expect(ask(pool, name)).rejects.toThrow(failure('model_load_failed'));
      expect(await ask(pool, 'a')).toBeGreaterThan(0);
    });
  }

  test('over a GPU is loaded without one, once, and what fails without one too fails', async () => {
    const { pool, events } = story({ loadedModelsMax: 4 }, 60_000, true);
    const native = (name: string): ModelSpec => ({ ...spec(name), backend: 'llama' });
    expect(await pool.info(native('a'))).toMatchObject({ device: 'cuda' });
    expect(await pool.info(native('needs-a-cpu'))).toMatchObject({ device: 'cpu' });
    expect(pool.loaded()).toMatchObject([
      { key: 'embedders/a', onGpu: true },
      { key: 'embedders/needs-a-cpu', onGpu: false },
    ]);
    await expect(pool.info(native('is-refused'))).rejects.toThrow(failure('model_load_failed'));
    // ONNX Runtime uses no GPU.
    await expect(pool.info(spec('is-refused'))).rejects.toThrow(failure('model_load_failed'));
    expect(events).toEqual([
      'load embedders/a cuda',
      'crash embedders/needs-a-cpu signal SIGSEGV',
      'refused embedders/needs-a-cpu',
      'load embedders/needs-a-cpu cpu',
      'refused embedders/is-refused',
    ]);
    const without = story();
    await expect(without.pool.info(native('needs-a-cpu'))).rejects.toThrow(failure('model_load_failed'));
  });

  test('that never loads is given up', async () => {
    const { pool, clock } = story();
    const asked = ask(pool, 'never-loads').catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await asked).toEqual(failure('model_load_failed'));
  });

  test('fails what is in flight with a retryable error, is counted, and the next request gets a fresh one', async () => {
    const { pool, events } = story();
    const first = await ask(pool, 'a');
    const others = Promise.allSettled([ask(pool, 'a', 'wait'), ask(pool, 'a', 'wait')]);
    await expect(ask(pool, 'a', 'crash')).rejects.toThrow(
      expect.objectContaining({ code: 'inference_interrupted', retryable: true }),
    );
    for (const each of await others) expect(each).toMatchObject({ reason: { code: 'inference_interrupted' } });
    expect(await ask(pool, 'a')).not.toBe(first);
    expect(events).toEqual(['load embedders/a', 'crash embedders/a signal SIGKILL', 'load embedders/a']);
  });

  test('that is killed fails requests that reach it before its end is noticed with a retryable error too', async () => {
    const { pool, events } = story();
    for (let kills = 1; kills <= 8; kills += 1) {
      const child = await ask(pool, 'a');
      process.kill(child, 'SIGKILL');
      const asked: Promise<unknown>[] = [];
      while (events.filter((event) => event.startsWith('crash')).length < kills) {
        asked.push(ask(pool, 'a').catch((error: unknown) => error));
        await new Promise((resolve) => setImmediate(resolve));
      }
      for (const outcome of await Promise.all(asked)) expect(outcome).toEqual(failure('inference_interrupted'));
    }
  });

  test('that hangs makes the server not ready, is ended, and is replaced', async () => {
    const { pool, clock, events } = story();
    await ask(pool, 'a');
    const stuck = ask(pool, 'a', 'spin').catch((error: unknown) => error);
    await clock.advance(14_999);
    expect(pool.stuck).toBe(false);
    await clock.advance(1);
    expect(pool.stuck).toBe(true);
    await clock.advance(75_000);
    expect(await stuck).toEqual(failure('inference_interrupted'));
    expect(pool.stuck).toBe(false);
    expect(events).toContain('crash embedders/a it was stuck');
    expect(await ask(pool, 'a')).toBeGreaterThan(0);
  });

  test('is found stuck also when nobody asks for anything', async () => {
    const { pool, clock } = story();
    const id = await ask(pool, 'a');
    process.kill(id, 'SIGSTOP');
    await clock.advance(30_000);
    expect(pool.stuck).toBe(false);
    await clock.advance(15_000);
    expect(pool.stuck).toBe(true);
    process.kill(id, 'SIGCONT');
    await until(async () => !pool.stuck);
  });

  test('is not ended where the server itself stood still, and the child had no time to answer', async () => {
    const { pool, clock, events } = story();
    const id = await ask(pool, 'a');
    process.kill(id, 'SIGSTOP');
    const asked = ask(pool, 'a');
    await clock.advance(0);
    clock.standStill(120_000);
    await clock.advance(0);
    process.kill(id, 'SIGCONT');
    expect(await asked).toBe(id);
    expect(pool.stuck).toBe(false);
    expect(events).toEqual(['load embedders/a']);
  });

  test('that is loading while the server stands still is loaded', async () => {
    const { pool, clock, events } = story();
    const asked = ask(pool, 'a').catch((error: unknown) => error);
    clock.standStill(120_000);
    await clock.advance(0);
    expect(await asked).toBeGreaterThan(0);
    expect(events).toEqual(['load embedders/a']);
  });

  test('answers errors of one request and goes on', async () => {
    const { pool } = story();
    await expect(ask(pool, 'a', 'fail')).rejects.toThrow(
      expect.objectContaining({
        code: 'inference_failed',
        message: 'the model "a" failed; the log has the details',
        cause: expect.objectContaining({ message: expect.stringContaining('the matrix is singular') }),
      }),
    );
    await expect(ask(pool, 'a', 'refuse')).rejects.toThrow(failure('context_length_exceeded'));
    expect(await ask(pool, 'a')).toBeGreaterThan(0);
  });
});

test('a request that nobody waits for any more is told to stop', async () => {
  const { pool } = story();
  const leaving = new AbortController();
  const working = ask(pool, 'a', 'wait', leaving.signal).catch((error: unknown) => error);
  await until(async () => pool.loaded()[0]?.inFlight === 1);
  leaving.abort(new Error('the client has gone'));
  expect(await working).toEqual(new Error('the client has gone'));
  await until(async () => pool.loaded()[0]?.inFlight === 0);
});
