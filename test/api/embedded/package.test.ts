import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { buildPackages } from '../../../scripts/build-package.ts';
import { ChildServer } from '../../support/fault/child-server.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

// The published packages, unpacked in an empty folder beside the packages that it depends on. `bun install` of the tarballs
// needs the registry; docs/releasing.md has the commands.

const root = join(import.meta.dir, '../../..');
/** Of a test that starts other processes, on a busy machine. */
const processMs = 120_000;
const isNodeMissing = Bun.which('node') === null;
const folder = new TemporaryDirectory();
const modules = join(folder.path, 'node_modules');
const engine = `sundew-${process.platform}-${process.arch}`;

function output(command: string[]) {
  const child = Bun.spawnSync(command, { cwd: folder.path, stdio: ['ignore', 'pipe', 'pipe'], timeout: processMs });
  return { code: child.exitCode, text: child.stdout.toString(), errors: child.stderr.toString() };
}

beforeAll(async () => {
  mkdirSync(modules);
  const tarballs = await buildPackages();
  for (const [at, name] of ['sundew', engine].entries()) {
    const target = join(modules, name);
    mkdirSync(target);
    const unpacked = output(['tar', '-xzf', tarballs[at] ?? '', '--strip-components=1', '-C', target]);
    expect([unpacked.code, unpacked.errors]).toEqual([0, '']);
  }
  const { dependencies } = (await Bun.file(join(modules, 'sundew/package.json')).json()) as { dependencies: object };
  for (const name of [...Object.keys(dependencies), '@types']) {
    if (name.includes('/')) mkdirSync(join(modules, name, '..'), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
}, processMs);

afterAll(() => folder[Symbol.dispose]());

const program = `
import { type EmbeddedDatabase, open, SundewError } from 'sundew';
import { connect, type Table } from 'sundew/client';

await using db: EmbeddedDatabase = await open('./data', { settings: { storage: { reserve: 0 } } });
const schema = {
  document_schemas: { note: { schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } } },
} as const;
const notes: Table<{ text: string }> = await db.createTable('notes', { schema });
await notes.put('a', { text: 'a plan' }, { sync_level: 'full_text' });
const { hits } = await notes.query({ full_text_search: { match: 'plan', field: 'text' }, order_by: [{ field: 'text' }] });
const error = await connect('http://127.0.0.1:1', { retries: 0 }).tables().catch((thrown: unknown) => thrown);
console.log(JSON.stringify([hits.hits[0]?._source?.text, error instanceof SundewError]));
`;

describe('the package', () => {
  test('has neither tests nor what builds it, and every platform as an optional package', async () => {
    const names = readdirSync(join(modules, 'sundew')).sort();
    expect(names).toEqual([
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'bin',
      'build',
      'client.js',
      'models',
      'needs-bun.mjs',
      'package.json',
      'src',
      'types',
    ]);
    const manifest = (await Bun.file(join(modules, 'sundew/package.json')).json()) as Record<string, object>;
    expect(Object.keys(manifest.optionalDependencies ?? {})).toContain(engine);
    expect(manifest).not.toHaveProperty('scripts');
    expect(readdirSync(join(modules, engine)).some((name) => name.endsWith('.node'))).toBe(true);
  });

  test(
    'opens a database in the process of a program, with the prebuilt engine',
    async () => {
      await Bun.write(join(folder.path, 'program.ts'), program);
      const ran = output([process.execPath, 'program.ts']);
      expect([ran.code, ran.errors, ran.text]).toEqual([0, '', '["a plan",true]\n']);
      expect(existsSync(join(modules, 'sundew/native'))).toBe(false);
    },
    processMs,
  );

  test(
    'stays outside of a bundle of the program, and says so where it was put inside',
    async () => {
      const source = `import { open } from 'sundew';
        await using db = await open('./bundled', { settings: { storage: { reserve: 0 } } });
        console.log((await db.tables()).length);`;
      await Bun.write(join(folder.path, 'bundled.ts'), source);
      const bundled = (outdir: string, external: string[]) => {
        const built = output([
          process.execPath,
          'build',
          'bundled.ts',
          '--target=bun',
          '--outdir',
          outdir,
          ...external,
        ]);
        expect([built.code, built.errors]).toEqual([0, '']);
        return output([process.execPath, join(outdir, 'bundled.js')]);
      };
      const outside = bundled('outside', ['--external', 'sundew']);
      expect([outside.code, outside.errors, outside.text]).toEqual([0, '', '0\n']);
      expect(bundled('inside', []).errors).toContain('bundle with --external sundew');
    },
    processMs,
  );

  test(
    'has the types of both of its modules, and nothing of the server in them',
    async () => {
      await Bun.write(join(folder.path, 'typed.ts'), program);
      const mistaken = program.replace("field: 'text' }] }", "field: 'txet' }] }");
      await Bun.write(join(folder.path, 'mistaken.ts'), mistaken);
      const options =
        '--ignoreConfig --noEmit --strict --target ESNext --module Preserve --moduleResolution bundler --types bun';
      const compile = (file: string) => output([join(root, 'node_modules/.bin/tsc'), file, ...options.split(' ')]);
      const typed = compile('typed.ts');
      expect([typed.code, typed.text]).toEqual([0, '']);
      expect(compile('mistaken.ts').text).toContain('"txet"');
      expect(existsSync(join(modules, 'sundew/types/server'))).toBe(false);
    },
    processMs,
  );

  test(
    'serves by its command, as bytecode that runs wherever it was installed',
    async () => {
      await using server = await ChildServer.start({
        dataDir: join(folder.path, 'served'),
        main: join(modules, 'sundew/bin/sundew.ts'),
        arguments: ['--models-dir', join(root, 'test/fixtures/models'), '--allow-downloads', 'false'],
      });
      const post = async (path: string, body: object) =>
        (await fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) })).status;
      expect(await post('/db/v1/tables/t', {})).toBe(200);
      expect(await post('/db/v1/tables/t/batch', { inserts: { a: {} }, sync_level: 'full_index' })).toBe(201);
      expect((await fetch(`${server.url}/docs/swagger-ui.css`)).status).toBe(200);
      // A model in a process of its own, and a chat template in a thread of its own.
      expect(await post('/ai/v1/embeddings', { model: 'tiny-bert', input: 'tea' })).toBe(200);
      const messages = [{ role: 'user', content: 'a' }];
      expect(await post('/ai/v1/chat/completions', { model: 'chain', messages, max_tokens: 2 })).toBe(200);
    },
    processMs,
  );

  test(
    'takes less than a second of a core from its command to its first answer',
    async () => {
      await using server = await ChildServer.start({
        dataDir: join(folder.path, 'started'),
        main: join(modules, 'sundew/bin/sundew.ts'),
      });
      const metrics = await (await fetch(`${server.metricsUrl}/metrics`)).text();
      expect(Number(/^process_cpu_seconds_total (\S+)$/m.exec(metrics)?.[1])).toBeLessThan(1);
    },
    processMs,
  );

  test('knows no path of the machine that it was built on', async () => {
    const files = [...new Bun.Glob('**/*.{js,ts,json,mjs}').scanSync(join(modules, 'sundew'))];
    expect(files.filter((name) => name.startsWith('build/server/')).length).toBeGreaterThan(4);
    const texts = await Promise.all(files.map((name) => Bun.file(join(modules, 'sundew', name)).text()));
    expect(files.filter((_, at) => texts[at]?.includes(root))).toEqual([]);
  });

  test.skipIf(isNodeMissing)(
    `gives Node${isNodeMissing ? ', which is missing here,' : ''} the client, and says that the embedded database needs Bun`,
    async () => {
      await Bun.write(
        join(folder.path, 'program.mjs'),
        `import { connect } from 'sundew/client';
        const error = await import('sundew').catch((thrown) => thrown);
        console.log(typeof connect('http://127.0.0.1:1').table, error.message.includes('needs Bun'));`,
      );
      expect(output(['node', 'program.mjs']).text).toBe('function true\n');
    },
    processMs,
  );
});
