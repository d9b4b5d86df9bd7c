import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { HttpConnection, requestBytes } from '../client/http-connection.ts';
import type { Placement } from '../machine/placement.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { freePort } from '../processes/child-process.ts';
import { serveArguments, startScript } from '../processes/sundew-server.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';

const startsPerPair = { smoke: 1, full: 3, scale: 3 } as const;
const deadlineMs = 30_000;
const pollMs = 1;

export const startUp: BenchCase = {
  name: 'start-up',
  summary: 'from spawning the process to the first answer on an empty directory: /healthz, and /readyz',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  using bodyDirectory = new TemporaryDirectory();
  const bodyFile = join(bodyDirectory.path, 'body.json');
  await Bun.write(bodyFile, '{"status":"ok"}');
  const server = async (path: string) => {
    using directory = new TemporaryDirectory();
    const port = freePort();
    // Awaited here: the directory must outlive the process.
    return await timeToAnswer(
      [process.execPath, startScript, ...serveArguments(directory.path, port, freePort())],
      port,
      path,
      context.placement,
    );
  };
  const bare = async () => {
    const port = freePort();
    const script = join(import.meta.dir, '..', 'peers', 'bare-http.server.ts');
    const command = [process.execPath, script, '--port', String(port), '--body', bodyFile];
    return timeToAnswer(command, port, '/', context.placement);
  };
  await server('/readyz');
  const results = await alternate(
    { health: () => server('/healthz'), bare, ready: () => server('/readyz') },
    context.pairs * startsPerPair[context.tier],
  );
  const notes = { directory: 'empty', resolutionMs: pollMs };
  return [
    compare({ name: 'healthz', unit: 'ms', ours: results.health, aim: { kind: 'at_most', value: 60 }, notes }),
    compare({
      name: 'healthz-beside-bare',
      unit: 'ms',
      ours: results.health,
      peer: { name: 'bare Bun.serve script', values: results.bare },
      notes,
    }),
    compare({ name: 'readyz', unit: 'ms', ours: results.ready, notes }),
  ];
}

/** Milliseconds from the spawn to a 200 for `path`; the process is stopped afterwards. */
async function timeToAnswer(command: string[], port: number, path: string, placement: Placement): Promise<number> {
  const request = requestBytes('GET', path);
  const start = performance.now();
  const child = Bun.spawn(placement.command('server', command), { stdout: 'ignore', stderr: 'ignore' });
  try {
    while (performance.now() - start < deadlineMs) {
      if (child.exitCode !== null) throw new Error(`the process ended with ${child.exitCode} before it answered`);
      if (await answers(port, request)) return performance.now() - start;
      await Bun.sleep(pollMs);
    }
    throw new Error(`no answer within ${deadlineMs} ms`);
  } finally {
    child.kill('SIGTERM');
    await child.exited;
  }
}

async function answers(port: number, request: Uint8Array): Promise<boolean> {
  try {
    const connection = await HttpConnection.open(port);
    const response = await connection.send(request);
    connection.close();
    return response.status === 200;
  } catch {
    return false;
  }
}
