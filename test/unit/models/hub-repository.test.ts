import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { chooseWeights, hubEntry } from '../../../src/models/download/hub-repository.ts';
import { pullModel } from '../../../src/models/download/pull-model.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixture = Bun.fileURLToPath(new URL('../../fixtures/models/embedders/tiny-bert/', import.meta.url));
const sha = 'a'.repeat(40);
const hash = (algorithm: 'sha1' | 'sha256', ...parts: (string | Uint8Array)[]) =>
  parts.reduce((hasher, part) => hasher.update(part), new Bun.CryptoHasher(algorithm)).digest('hex');

/** A hub with one repository whose tree comes in two pages, as the hub's own interface describes it. */
function hub(change: (tree: Record<string, unknown>[]) => unknown = (tree) => tree) {
  const bytesOf = (path: string) => new Uint8Array(readFileSync(join(fixture, path)));
  const model = bytesOf('onnx/model.onnx');
  const tokenizer = bytesOf('tokenizer.json');
  const tree = [
    { type: 'directory', path: 'onnx', size: 0, oid: sha },
    {
      type: 'file',
      path: 'onnx/model.onnx',
      size: model.length,
      oid: sha,
      lfs: { oid: hash('sha256', model), size: model.length },
    },
    {
      type: 'file',
      path: 'tokenizer.json',
      size: tokenizer.length,
      oid: hash('sha1', `blob ${tokenizer.length}\0`, tokenizer),
    },
    { type: 'file', path: 'README.md', size: 1, oid: sha },
  ];
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === '/api/models/acme/tiny/revision/main') return Response.json({ sha, private: false });
      if (pathname === `/api/models/acme/tiny/tree/${sha}`) {
        const page = searchParams.has('cursor') ? tree.slice(2) : tree.slice(0, 2);
        const link = searchParams.has('cursor') ? {} : { link: `<${request.url}&cursor=x>; rel="next"` };
        return Response.json(change(page), { headers: link });
      }
      const file = pathname.replace(`/acme/tiny/resolve/${sha}/`, '');
      return file === pathname ? new Response('{}', { status: 404 }) : new Response(bytesOf(file));
    },
  });
  return { url: server.url.href, [Symbol.dispose]: () => void server.stop(true) };
}

describe('a model of the hub by its address', () => {
  test('is pinned to a revision, chosen with what it needs, and checked by the digests that the hub tells', async () => {
    using directory = new TemporaryDirectory();
    using server = hub();
    const entry = await hubEntry('hub:acme/tiny', {
      hubUrl: server.url,
      kind: 'embedders',
      name: undefined,
      clock: systemClock,
    });
    expect(entry.files.map(({ path }) => path)).toEqual(['onnx/model.onnx', 'tokenizer.json']);
    const options = {
      modelsDirectory: directory.path,
      hubUrl: server.url,
      packageIndex: 'none',
      allowDownloads: true,
      clock: systemClock,
    };
    const model = await pullModel(entry, options);
    expect([model.name, model.manifest.dimension, model.manifest.source]).toEqual([
      'acme/tiny',
      32,
      `hub:acme/tiny@${sha}`,
    ]);
  });

  test('whose bytes are not those of the digest is refused, of either kind', async () => {
    for (const at of [0, 1]) {
      using directory = new TemporaryDirectory();
      using server = hub((tree) =>
        tree.map((file) => ({
          ...file,
          ...(at === 0 && 'lfs' in file ? { lfs: { ...(file.lfs as object), oid: 'b'.repeat(64) } } : {}),
          oid: sha,
        })),
      );
      const entry = await hubEntry('hub:acme/tiny@main', {
        hubUrl: server.url,
        kind: 'embedders',
        name: 'tiny',
        clock: systemClock,
      });
      const pull = pullModel(entry, {
        modelsDirectory: directory.path,
        hubUrl: server.url,
        packageIndex: 'none',
        allowDownloads: true,
        clock: systemClock,
      });
      await expect(pull).rejects.toThrow(at === 0 ? /^onnx\/model\.onnx .*not those/ : /^tokenizer\.json .*not those/);
    }
  });

  test('that is not there, or of a hub that answers nonsense, is refused', async () => {
    using server = hub(() => [{ path: 7 }]);
    const ask = (address: string) =>
      hubEntry(address, { hubUrl: server.url, kind: 'embedders', name: 'x', clock: systemClock });
    await expect(ask('hub:acme/gone')).rejects.toThrow(/no such model/);
    await expect(ask('hub:acme/tiny')).rejects.toThrow(/something else than a hub/);
    await expect(ask('hub:../../etc')).rejects.toThrow(/is not an address/);
  });

  test('has one file that can be meant, or says which there are', () => {
    const choose = (...paths: string[]) =>
      chooseWeights(
        paths.map((path) => ({ path })),
        undefined,
      );
    expect(choose('a-Q4_K_M.gguf', 'README.md')).toBe('a-Q4_K_M.gguf');
    expect(choose('a-f16.gguf', 'a-q8_0.gguf')).toBe('a-q8_0.gguf');
    expect(() => choose('a-Q4_0.gguf', 'a-Q5_0.gguf')).toThrow(
      'name the file with #PATH; there are a-Q4_0.gguf, a-Q5_0.gguf',
    );
    expect(choose('onnx/model.onnx', 'onnx/model_quantized.onnx', 'onnx/model_fp16.onnx')).toBe(
      'onnx/model_quantized.onnx',
    );
    expect(() => choose('pytorch_model.bin')).toThrow(/there are none/);
    expect(chooseWeights([{ path: 'b/x.gguf' }, { path: 'c/y.gguf' }], 'c/y.gguf')).toBe('c/y.gguf');
  });
});
