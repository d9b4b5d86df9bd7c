import { describe, expect, test } from 'bun:test';
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zipSync } from 'fflate';
import { type Header, pack } from 'tar-stream';
import { models } from '../../../src/cli/models.ts';
import { runCommandLine } from '../../../src/cli/run.ts';
import { modelCatalogue } from '../../../src/models/download/model-catalogue.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixtures = Bun.fileURLToPath(new URL('../../fixtures/models/', import.meta.url));
const embedder = `${fixtures}embedders/tiny-bert`;

async function sundew(directory: string, ...words: string[]) {
  const told = { code: 0, out: '', err: '' };
  const all = ['models', ...words, '--models-dir', directory, '--ml-dir', join(directory, 'predictors')];
  told.code = await runCommandLine({ verbs: { models: async () => models }, version: '1' }, all, {
    environment: {},
    print(text) {
      told.out += text;
    },
    explain(text) {
      told.err += text;
    },
  });
  return told;
}

describe('sundew models import', () => {
  test('installs a folder under its name, with its digests, so that it is listed, shown and verified', async () => {
    using directory = new TemporaryDirectory();
    const path = directory.path;
    expect(await sundew(path, 'import', embedder, '--kind', 'embedders', '--name', 'acme/tiny')).toMatchObject({
      code: 0,
    });
    expect((await sundew(path, 'list')).out).toMatch(/^embedders {2}acme\/tiny {2}full {2}62KiB\n$/);
    const shown = JSON.parse((await sundew(path, 'show', 'acme/tiny', '--verify')).out);
    expect(shown.manifest).toMatchObject({ dimension: 32, context_length: 64, pooling: 'mean' });
    expect(Object.keys(shown.manifest.digests)).toContain('onnx/model.onnx');
    writeFileSync(join(path, 'embedders/acme/tiny/tokenizer.json'), '{}');
    const verified = await sundew(path, 'show', 'acme/tiny', '--verify');
    expect([verified.code, verified.err]).toEqual([1, 'tokenizer.json is not the file that was installed\n']);
  });

  test('installs one file under its own name', async () => {
    using directory = new TemporaryDirectory();
    const { code } = await sundew(
      directory.path,
      'import',
      `${fixtures}generators/chain/model.gguf`,
      '--kind',
      'generators',
    );
    expect(code).toBe(0);
    expect(existsSync(join(directory.path, 'generators/model/model.gguf'))).toBe(true);
  });

  test('what cannot be served leaves nothing behind', async () => {
    using directory = new TemporaryDirectory();
    using source = new TemporaryDirectory();
    const refused = async (reason: RegExp) => {
      const told = await sundew(directory.path, 'import', source.path, '--kind', 'embedders', '--name', 'bad');
      expect(told.err).toMatch(reason);
      expect([told.code, readdirSync(join(directory.path, 'embedders'))]).toEqual([1, []]);
    };
    source.write('model.onnx', '<html>the proxy says no</html>');
    await refused(/model\.onnx/);
    writeFileSync(join(source.path, 'model.onnx'), readFileSync(`${embedder}/onnx/model.onnx`));
    await refused(/no tokenizer\.json/);
    source.write('tokenizer.json', '{}');
    source.write('manifest.json', JSON.stringify({ digests: { 'model.onnx': '0'.repeat(64) } }));
    await refused(/model\.onnx is not the file/);
    source.write('manifest.json', '{}');
    symlinkSync('/etc/hostname', join(source.path, 'link.json'));
    await refused(/link\.json is a link/);
  });

  test('a name that exists, leaves the directory, or has no kind is refused', async () => {
    using directory = new TemporaryDirectory();
    const again = () => sundew(directory.path, 'import', embedder, '--kind', 'embedders');
    expect((await again()).code).toBe(0);
    expect((await again()).err).toMatch(/exists already/);
    const escaping = await sundew(directory.path, 'import', embedder, '--kind', 'embedders', '--name', '../up');
    expect(escaping.err).toMatch(/is not a name/);
    expect((await sundew(directory.path, 'import', embedder)).err).toMatch(/--kind is missing/);
    expect((await sundew(directory.path, 'import', embedder, '--kind', 'embedder')).code).toBe(2);
  });
});

describe('sundew models import of an archive', () => {
  const files = { 'tiny/onnx/model.onnx': 'onnx/model.onnx', 'tiny/tokenizer.json': 'tokenizer.json' };

  async function tarOf(entries: readonly [Partial<Header> & { name: string }, Uint8Array?][]): Promise<Uint8Array> {
    const tar = pack();
    for (const [header, bytes] of entries) tar.entry(header, Buffer.from(bytes ?? []));
    tar.finalize();
    const pieces: Uint8Array[] = [];
    for await (const piece of tar) pieces.push(piece as Uint8Array);
    return Buffer.concat(pieces);
  }

  test('installs what a zip, a tar and a compressed tar hold', async () => {
    using directory = new TemporaryDirectory();
    const read = (path: string) => new Uint8Array(readFileSync(`${embedder}/${path}`));
    const contents = Object.fromEntries(Object.entries(files).map(([name, from]) => [name, read(from)]));
    const tar = await tarOf(Object.entries(contents).map(([name, bytes]) => [{ name, size: bytes.length }, bytes]));
    const archives = {
      'a.zip': zipSync(contents),
      'b.tar': tar,
      'c.tar.gz': Bun.gzipSync(tar as Uint8Array<ArrayBuffer>),
    };
    for (const [name, bytes] of Object.entries(archives)) {
      await Bun.write(join(directory.path, name), bytes);
      const told = await sundew(directory.path, 'import', join(directory.path, name), '--kind', 'embedders');
      expect([told.err, told.code]).toEqual([expect.stringContaining('is installed'), 0]);
    }
    expect((await sundew(directory.path, 'list')).out.match(/^embedders {2}[abc] /gm)).toHaveLength(3);
  });

  test('refuses one that would leave its folder, has links, repeats itself, swells, or is damaged', async () => {
    using directory = new TemporaryDirectory();
    const none = new Uint8Array([1]);
    const swelling = new Uint8Array(12 * 1024 * 1024);
    const bad: [string, Uint8Array, RegExp][] = [
      ['a.zip', zipSync({ '../escaped': none }), /leaves the folder/],
      ['b.zip', zipSync({ '/tmp/escaped': none }), /leaves the folder/],
      ['c.zip', zipSync({ 'a\\..\\escaped': none }), /leaves the folder/],
      ['d.tar', await tarOf([[{ name: 'x/../../escaped', size: 1 }, none]]), /leaves the folder/],
      ['e.tar', await tarOf([[{ name: 'link', type: 'symlink', linkname: '/etc/passwd' }]]), /link or a device/],
      ['f.tar', await tarOf([[{ name: 'link', type: 'link', linkname: '/etc/passwd' }]]), /link or a device/],
      [
        'g.tar',
        await tarOf([
          [{ name: 'a', size: 1 }, none],
          [{ name: './a', size: 1 }, none],
        ]),
        /there twice/,
      ],
      ['h.zip', zipSync({ 'model.onnx': swelling }), /out of proportion/],
      ['i.zip', zipSync({ 'model.onnx': none }).subarray(0, 20), /damaged|not a zip|ends inside/],
      ['j.tar.gz', none, /damaged/],
    ];
    for (const [name, bytes, reason] of bad) {
      await Bun.write(join(directory.path, name), bytes);
      const told = await sundew(directory.path, 'import', join(directory.path, name), '--kind', 'embedders');
      expect([name, told.code, told.err]).toEqual([name, 1, expect.stringMatching(reason)]);
      expect(readdirSync(join(directory.path, 'embedders'))).toEqual([]);
    }
    expect(existsSync(join(directory.path, '..', 'escaped'))).toBe(false);
  });
});

describe('sundew models pull', () => {
  test('shows the catalogue, guesses at a misspelt name, and keeps from the network when told to', async () => {
    using directory = new TemporaryDirectory();
    const { out } = await sundew(directory.path, 'pull');
    expect(out).toMatch(/^all-minilm-l6-v2 +embedders +23\.4 MB +Apache-2\.0 /m);
    expect(out).toMatch(/^smollm2-135m-instruct +generators +98\.4 MB +Apache-2\.0 /m);
    expect(out).toMatch(/^ms-marco-minilm-l6-v2 +rerankers /m);
    const misspelt = await sundew(directory.path, 'pull', 'all-minilm-l6-v1');
    expect([misspelt.code, misspelt.err]).toEqual([2, expect.stringContaining('Did you mean "all-minilm-l6-v2"?')]);
    const off = await sundew(directory.path, 'pull', 'all-minilm-l6-v2', '--allow-downloads', 'false');
    expect([off.code, off.err]).toEqual([1, expect.stringContaining('downloads are turned off')]);
  });

  test('of a model that is there already says so and is done; one of the same name from elsewhere is kept', async () => {
    using directory = new TemporaryDirectory();
    using folder = new TemporaryDirectory();
    cpSync(embedder, folder.path, { recursive: true });
    const pull = () => sundew(directory.path, 'pull', 'all-minilm-l6-v2', '--hub-url', 'none');
    const source = modelCatalogue()
      .filter(({ name }) => name === 'all-minilm-l6-v2')
      .flatMap(({ files }) => files.map(({ sources }) => sources.at(-1)?.from.split('#')[0]));
    folder.write('manifest.json', JSON.stringify({ source: [...new Set(source)].join(', ') }));
    const install = ['import', folder.path, '--kind', 'embedders', '--name', 'all-minilm-l6-v2'];
    await sundew(directory.path, ...install);
    expect(await pull()).toEqual({
      code: 0,
      out: '',
      err: `embedders/all-minilm-l6-v2 is installed already in ${directory.path}; nothing was fetched\n`,
    });
    await sundew(directory.path, 'rm', 'all-minilm-l6-v2', '--yes');
    folder.write('manifest.json', '{}');
    await sundew(directory.path, ...install);
    expect(await pull()).toMatchObject({ code: 1, err: expect.stringContaining('exists already; remove it first') });
  });
});

describe('sundew models rm', () => {
  test('asks first, then removes the model and the directory of its owner', async () => {
    using directory = new TemporaryDirectory();
    const path = directory.path;
    await sundew(path, 'import', embedder, '--kind', 'embedders', '--name', 'acme/tiny');
    const asked = await sundew(path, 'rm', 'acme/tiny');
    expect([asked.code, existsSync(join(path, 'embedders/acme/tiny'))]).toEqual([2, true]);
    expect(asked.err).toMatch(/--yes/);
    expect((await sundew(path, 'rm', 'acme/tiny', '--yes')).code).toBe(0);
    expect(readdirSync(join(path, 'embedders'))).toEqual([]);
    expect((await sundew(path, 'rm', 'acme/tiny', '--yes')).err).toMatch(/no model named/);
  });

  test('a name of two kinds needs the kind, and a damaged model can go', async () => {
    using directory = new TemporaryDirectory();
    const path = directory.path;
    for (const kind of ['embedders', 'rerankers'])
      await sundew(path, 'import', embedder, '--kind', kind, '--name', 'x');
    expect((await sundew(path, 'rm', 'x', '--yes')).err).toMatch(/say which with --kind/);
    writeFileSync(join(path, 'rerankers/x/onnx/model.onnx'), '');
    expect((await sundew(path, 'list')).err).toMatch(/rerankers\/x cannot be served/);
    expect((await sundew(path, 'rm', 'x', '--kind', 'rerankers', '--yes')).code).toBe(0);
    expect((await sundew(path, 'list')).out).toMatch(/^embedders/);
  });
});
