import { expect, test } from 'bun:test';
import { bundleClient } from '../../../scripts/build-client.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

/** Of a test that starts another process, on a busy machine. */
const processMs = 120_000;

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
  const found = { scanned, total: hits.total.value, isError: error instanceof SundewError, code: error.code };
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
    expect(found).toEqual({ scanned: 300, total: 5, isError: true, code: 'table_not_found' });
    expect(await child.exited).toBe(0);
  },
  processMs,
);

test(
  'the package gives both by their names, and says what the embedded database needs',
  async () => {
    // Not as literals: the compiler has no types of the package before it is built.
    const [client, embedded] = await Promise.all(['sundew/client', 'sundew'].map((name) => import(name)));
    expect([typeof client.connect, typeof embedded.open]).toEqual(['function', 'function']);
    const node = Bun.which('node');
    if (node === null) return;
    const child = Bun.spawn([node, '--input-type=module', '-e', "await import('sundew')"], {
      cwd: Bun.fileURLToPath(new URL('../../../', import.meta.url)),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    expect(await new Response(child.stderr).text()).toContain('the embedded database needs Bun');
  },
  processMs,
);
