import { describe, expect, test } from 'bun:test';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelCatalogue } from '../../../src/models/download/model-catalogue.ts';
import { ModelDownloads, type ModelDownloadsDeps } from '../../../src/models/download/model-downloads.ts';
import { ModelRegistry } from '../../../src/models/model-registry.ts';
import { createLogger } from '../../../src/observability/line-logger.ts';
import type { ServiceError } from '../../../src/protocol/service-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixture = Bun.fileURLToPath(new URL('../../fixtures/models/embedders/tiny-bert', import.meta.url));
const entry = { kind: 'embedders', name: 'tiny', license: 'MIT', description: 'a fixture', files: [] } as const;

/** Downloads whose bytes arrive when the test says so. */
class Downloads {
  readonly clock = new FakeClock();
  readonly lines: string[] = [];
  readonly registry: ModelRegistry;
  readonly models: ModelDownloads;
  pulls = 0;
  tell: Parameters<ModelDownloadsDeps['pull']>[1]['onEvent'];
  #arrival = Promise.withResolvers<void>();

  constructor(directory: string, allowDownloads = true) {
    this.registry = new ModelRegistry(directory, '/nowhere');
    this.models = new ModelDownloads({
      registry: this.registry,
      catalogue: () => [{ ...entry, files: [] }],
      allowDownloads,
      clock: this.clock,
      logger: createLogger({
        level: 'debug',
        format: 'json',
        clock: this.clock,
        write: (line) => this.lines.push(line),
      }),
      pull: async (_entry, { onEvent, signal }) => {
        this.pulls += 1;
        this.tell = onEvent;
        signal?.addEventListener('abort', () => this.fail('cancelled'));
        await this.#arrival.promise;
        cpSync(fixture, join(directory, 'embedders/tiny'), { recursive: true });
      },
    });
  }

  refusal(name = 'tiny'): ServiceError {
    try {
      this.models.require('embedders', name);
    } catch (error) {
      return error as ServiceError;
    }
    throw new Error('nothing was thrown');
  }

  async arrive(): Promise<void> {
    this.#arrival.resolve();
    await Bun.sleep(0);
  }

  async fail(reason: string): Promise<void> {
    const { reject } = this.#arrival;
    this.#arrival = Promise.withResolvers();
    reject(new Error(reason));
    await Bun.sleep(0);
  }
}

test('what comes with the product is a catalogue', () => {
  expect(modelCatalogue().map(({ name }) => name)).toContain('all-minilm-l6-v2');
});

describe('a model of the catalogue that is not installed', () => {
  test('is fetched once by its first use, and is there without a restart', async () => {
    using directory = new TemporaryDirectory();
    const downloads = new Downloads(directory.path);
    const first = downloads.refusal();
    expect([first.code, first.status, first.retryable]).toEqual(['model_loading', 503, true]);
    expect(first.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    await downloads.clock.advance(2_000);
    downloads.tell?.({ type: 'progress', received: 40, total: 100 });
    const second = downloads.refusal();
    expect([second.message, second.retryAfterMs]).toEqual(['the model "tiny" is downloading (40%)', 3_000]);
    await downloads.arrive();
    expect(downloads.models.require('embedders', 'tiny').manifest.dimension).toBe(32);
    expect(downloads.pulls).toBe(1);
    expect(downloads.lines.some((line) => line.includes('"percent":40'))).toBe(true);
  });

  test('that could not be fetched says why, and is tried again after a while', async () => {
    using directory = new TemporaryDirectory();
    const downloads = new Downloads(directory.path);
    downloads.refusal();
    await downloads.fail('the disk is full');
    const refusal = downloads.refusal();
    expect([refusal.code, refusal.retryable, downloads.pulls]).toEqual(['unavailable', true, 1]);
    expect(refusal.message).toContain('could not be downloaded: the disk is full');
    await downloads.clock.advance(60_000);
    expect(downloads.refusal().code).toBe('model_loading');
    await downloads.arrive();
    expect(downloads.models.require('embedders', 'tiny').name).toBe('tiny');
  });

  test('is not fetched where downloads are off, and the answer says how to get it', () => {
    using directory = new TemporaryDirectory();
    const downloads = new Downloads(directory.path, false);
    const refusal = downloads.refusal();
    expect([refusal.code, refusal.status, downloads.pulls]).toEqual(['model_not_found', 404, 0]);
    expect(refusal.message).toContain('sundew models pull tiny fetches it');
  });

  test('can be waited for', async () => {
    using directory = new TemporaryDirectory();
    const downloads = new Downloads(directory.path);
    const waiting = Promise.all([1, 2].map(() => downloads.models.obtain('embedders', 'tiny')));
    await downloads.arrive();
    expect((await waiting).map(({ name }) => name)).toEqual(['tiny', 'tiny']);
    expect(downloads.pulls).toBe(1);
    expect(downloads.models.obtain('embedders', 'nothing')).rejects.toThrow(/no model named/);
  });

  test('tells those who wait how far it is, and lets one go who leaves', async () => {
    using directory = new TemporaryDirectory();
    const downloads = new Downloads(directory.path);
    const told: unknown[] = [];
    const leaving = new AbortController();
    const left = downloads.models.obtain('embedders', 'tiny', { signal: leaving.signal });
    const waiting = downloads.models.obtain('embedders', 'tiny', { onProgress: (progress) => told.push(progress) });
    downloads.tell?.({ type: 'progress', received: 10, total: 40 });
    leaving.abort(new Error('left'));
    await expect(left).rejects.toThrow('left');
    downloads.tell?.({ type: 'progress', received: 40, total: 40 });
    await downloads.arrive();
    expect((await waiting).name).toBe('tiny');
    expect(told).toEqual([
      { received: 10, total: 40 },
      { received: 40, total: 40 },
    ]);
  });

  test('is given up when the server stops', async () => {
    using directory = new TemporaryDirectory();
    const downloads = new Downloads(directory.path);
    const stopping = new AbortController();
    const ended = downloads.models.run(stopping.signal);
    downloads.refusal();
    stopping.abort();
    await ended;
    expect(downloads.lines.some((line) => line.includes('could not be fetched'))).toBe(false);
  });
});

test('a model of no catalogue is not fetched; one that was imported meanwhile is found; a broken one is not replaced', () => {
  using directory = new TemporaryDirectory();
  const downloads = new Downloads(directory.path);
  expect(downloads.refusal('mine').code).toBe('model_not_found');
  cpSync(fixture, join(directory.path, 'embedders/mine'), { recursive: true });
  expect(downloads.models.require('embedders', 'mine').name).toBe('mine');
  cpSync(fixture, join(directory.path, 'embedders/tiny'), { recursive: true });
  writeFileSync(join(directory.path, 'embedders/tiny/onnx/model.onnx'), '<html>');
  const broken = downloads.refusal();
  expect([broken.code, broken.status]).toEqual(['model_load_failed', 500]);
  expect(broken.message).toContain('cannot be served: model.onnx');
  expect(downloads.pulls).toBe(0);
});
