import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { entryFile } from '../../runtime/entry-file.ts';
import { DemoError } from './demo-client.ts';

const entry = entryFile(new URL('../../main.ts', import.meta.url));
const readyDeadlineMs = 30_000;
const pollMs = 10;

/** A server of the demo's own: a process on free ports with a temporary data directory that goes when the scope ends. */
export class DemoServer implements AsyncDisposable {
  readonly url: string;
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>;
  readonly #directory: string;

  private constructor(url: string, child: Bun.Subprocess<'ignore', 'ignore', 'pipe'>, directory: string) {
    this.url = url;
    this.#child = child;
    this.#directory = directory;
  }

  static async start(clock: Clock): Promise<DemoServer> {
    const directory = mkdtempSync(join(tmpdir(), 'sundew-demo-'));
    const port = String(freePort());
    const ports = ['--port', port, '--metrics-port', String(freePort())];
    const child = Bun.spawn([process.execPath, entry, 'serve', ...ports, '--data-dir', directory], {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'pipe',
    });
    const server = new DemoServer(`http://127.0.0.1:${port}`, child, directory);
    const errors = new Response(child.stderr).text();
    const deadline = clock.monotonicMs() + readyDeadlineMs;
    while (clock.monotonicMs() < deadline && child.exitCode === null) {
      const response = await fetch(`${server.url}/readyz`).catch(() => undefined);
      if (response?.ok) return server;
      await Bun.sleep(pollMs);
    }
    await server[Symbol.asyncDispose]();
    throw new DemoError(`the demo's own server did not start: ${(await errors).trim().slice(-500)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#child.exited;
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
  const { port } = probe;
  probe.stop(true);
  return port ?? 0;
}
