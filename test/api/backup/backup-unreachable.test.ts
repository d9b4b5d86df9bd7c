import { expect, test } from 'bun:test';
import { join } from 'node:path';

const main = join(import.meta.dir, '../../../src/main.ts');

/** Runs `sundew backup create` against an address; the exit code and what a person reads. */
async function create(url: string, env = process.env): Promise<[number, string]> {
  const words = ['backup', 'create', 'file:///archive', 'monday', '--url', url];
  const run = Bun.spawn([process.execPath, main, ...words], { env, stdout: 'ignore', stderr: 'pipe' });
  const said = await new Response(run.stderr).text();
  return [await run.exited, said];
}

const retry = 75;

test('a backup by a server that is not there, or goes away meanwhile, may be tried again', async () => {
  const gone = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data: (socket) => void socket.terminate() } });
  const cut = await create(`http://127.0.0.1:${gone.port}`);
  gone.stop(true);
  const refused = await create(`http://127.0.0.1:${gone.port}`);
  for (const [code, said] of [cut, refused]) {
    expect(code).toBe(retry);
    expect(said).toContain('unavailable: the server gives no answer (');
    expect(said).not.toContain('verbose');
  }
  // The server may have done it before it went away.
  expect(cut[1]).toContain('what was asked may have been done');
});

test('an answer of a proxy is told by its status, and tried again where another attempt may help', async () => {
  let status = 502;
  using proxy = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('<html>', { status }) });
  expect(await create(proxy.url.href)).toEqual([retry, expect.stringContaining('status 502')]);
  status = 404;
  expect(await create(proxy.url.href)).toEqual([1, expect.stringContaining('status 404')]);
});

test('a backup is waited for longer than any other answer', async () => {
  const env = { ...process.env, BUN_CONFIG_HTTP_IDLE_TIMEOUT: '1' };
  const asked = Promise.withResolvers<void>();
  const made = Promise.withResolvers<void>();
  const answer = { backup_id: 'monday', status: 'completed', tables: [] };
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method === 'GET') return new Promise<never>(() => undefined);
      asked.resolve();
      await made.promise;
      return Response.json(answer);
    },
  });
  const backup = create(server.url.href, env);
  await asked.promise;
  // A request that began later and waits as others do has given up.
  const impatient = Bun.spawn([process.execPath, '-e', `await fetch('${server.url.href}')`], { env, stderr: 'pipe' });
  expect(await new Response(impatient.stderr).text()).toContain('timed out');
  made.resolve();
  expect((await backup)[0]).toBe(0);
}, 120_000);
