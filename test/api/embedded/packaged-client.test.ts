import { expect, test } from 'bun:test';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { bundleClient, writeClient } from '../../../scripts/build-client.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const root = Bun.fileURLToPath(new URL('../../../', import.meta.url));
/** Of a test that starts another process, on a busy machine. */
const processMs = 120_000;
const isNodeMissing = Bun.which('node') === null;

/** The program of a user with the client, without anything of Bun. */
const program = `
  const { connect, SundewError } = await import(process.argv[2]);
  const db = connect(process.argv[3] + '/');
  const table = await db.createTable('notes');
  const writer = table.writer({ keysMax: 10, sync_level: 'full_text' });
  for (let at = 0; at < 25; at++) await writer.put('n:' + at, { at });
  await writer.flush();
  let scanned = 0;
  for await (const { document } of table.scan()) scanned += document.at;
  const { hits } = await table.query({ filter_query: { range: { at: { gte: 20 } } } });
  const error = await db.table('none').get('a').catch((thrown) => thrown);
  const leaving = new AbortController();
  const isKept = (await table.get('n:1', { signal: leaving.signal })).at === 1;
  const left = table.query({}, { signal: leaving.signal }).catch((thrown) => thrown);
  leaving.abort(new Error('left'));
  const reason = (await left).message;
  const found = { isKept, reason, scanned, total: hits.total.value, isError: error instanceof SundewError, code: error.code };
  console.log(JSON.stringify(found));
`;

test(
  'the client is one module that imports nothing, and works in Node',
  async () => {
    using directory = new TemporaryDirectory();
    await using server = await startTestServer();
    const bundle = await bundleClient(directory.path);
    const code = await Bun.file(bundle).text();
    expect(code).not.toMatch(/^import |\brequire\(|\bfrom\s*["']|\bBun\./m);
    expect(Buffer.byteLength(code)).toBeLessThan(40_000);
    const file = `${directory.path}/program.mjs`;
    await Bun.write(file, program);
    const node = Bun.which('node') ?? process.execPath;
    const child = Bun.spawn([node, file, bundle, server.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: processMs,
    });
    const found: unknown = JSON.parse(await new Response(child.stdout).text());
    expect(found).toEqual({
      isKept: true,
      reason: 'left',
      scanned: 300,
      total: 5,
      isError: true,
      code: 'table_not_found',
    });
    expect(await child.exited).toBe(0);
  },
  processMs,
);

test(
  'the client alone is a package whose types refuse what it does not take',
  async () => {
    using directory = new TemporaryDirectory();
    const modules = join(directory.path, 'node_modules');
    const target = join(modules, 'sundew-client');
    await writeClient(target);
    const { dependencies } = (await Bun.file(join(target, 'package.json')).json()) as { dependencies: object };
    mkdirSync(join(modules, '@sinclair'));
    for (const name of Object.keys(dependencies)) symlinkSync(join(root, 'node_modules', name), join(modules, name));
    const query = (body: string) => `import { connect } from 'sundew-client';
      export const found = connect('http://x').table<{ a: string }>('t').query(${body});`;
    const compile = async (name: string, body: string) => {
      await Bun.write(join(directory.path, name), query(body));
      const options =
        '--ignoreConfig --noEmit --strict --target ESNext --module NodeNext --lib ESNext,DOM,DOM.AsyncIterable';
      const command = [join(root, 'node_modules/.bin/tsc'), name, ...options.split(' ')];
      return Bun.spawnSync(command, { cwd: directory.path, timeout: processMs }).stdout.toString();
    };
    expect(await compile('typed.ts', '{ limit: 1 }')).toBe('');
    expect(await compile('mistaken.ts', "{ limit: 'x' }")).toContain(
      "Type 'string' is not assignable to type 'number'",
    );
  },
  processMs,
);

test(
  'the package gives both by their names',
  async () => {
    // Not as literals: the compiler has no types of the package before it is built.
    const [client, embedded] = await Promise.all(['sundew/client', 'sundew'].map((name) => import(name)));
    expect([typeof client.connect, typeof embedded.open]).toEqual(['function', 'function']);
  },
  processMs,
);

test.skipIf(isNodeMissing)(
  `the package tells Node${isNodeMissing ? ', which is missing here,' : ''} what the embedded database needs`,
  async () => {
    for (const program of ["await import('sundew')", "import { open, SundewError } from 'sundew'"]) {
      const child = Bun.spawn(['node', '--input-type=module', '-e', program], {
        cwd: root,
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      expect(await new Response(child.stderr).text()).toContain('the embedded database needs Bun');
    }
  },
  processMs,
);
