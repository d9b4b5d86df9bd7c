/**
 * Our server, and in the same process a caller of its query service without HTTP: what a program that embeds it would do.
 * A turn of that caller is asked for at a port of its own, as a `ServiceTurn`.
 * `--directory DIRECTORY --port PORT --metrics PORT --control PORT`
 */
import { serverCaller } from '../../src/access/principal.ts';
import { loadConfig } from '../../src/config/load.ts';
import { RunningConfig } from '../../src/config/reload.ts';
import type { App } from '../../src/http/listener/app.ts';
import { Reply } from '../../src/http/listener/reply.ts';
import { ServerListener } from '../../src/http/listener/server-listener.ts';
import type { RouteContext } from '../../src/http/routing/route.ts';
import { must } from '../../src/lib/assert.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/observability/line-logger.ts';
import { writeToStandardError } from '../../src/observability/standard-error.ts';
import { startServer } from '../../src/server/start-server.ts';
import { scriptArguments } from '../engines/script-arguments.ts';
import type { ServiceAnswer, ServiceTurn } from '../processes/sundew-service.ts';

const queryPath = '/db/v1/tables/:table/query';
const given = scriptArguments('directory', 'port', 'metrics', 'control');

class OpenListener extends ServerListener {
  app: App | undefined;

  override attach(app: App): void {
    super.attach(app);
    this.app = app;
  }
}

const flags = new Map([
  ['--data-dir', given.directory],
  ['--port', given.port],
  ['--metrics-port', given.metrics],
]);
const load = () => loadConfig({ flags, environment: {}, file: undefined, readFile: () => '' });
const listener = new OpenListener('127.0.0.1', Number(given.port));
const server = await startServer({
  config: new RunningConfig(load(), load),
  listener,
  logger: createLogger({ level: 'warn', format: 'json', clock: systemClock, write: writeToStandardError }),
  clock: systemClock,
});
const app = must(listener.app, 'the server has attached its application');
const route = must(
  app.routes.find(({ path }) => path === queryPath),
  'there is a route for queries',
);

const control = Bun.serve({
  port: Number(given.control),
  hostname: '127.0.0.1',
  idleTimeout: 255,
  fetch: async (request) => Response.json(await run((await request.json()) as ServiceTurn)),
});

process.once('SIGTERM', async () => {
  await control.stop(true);
  await server.drain(1_000);
  await server.stop();
});

async function run({ table, requests, inFlight, durationMs }: ServiceTurn): Promise<ServiceAnswer> {
  const bodies = requests.map((text) => new TextEncoder().encode(text));
  const { signal } = new AbortController();
  const shared = { params: { table }, query: undefined, request: new Request('http://none'), requestId: '', signal };
  const unused = {
    addTiming() {},
    acceptsMsgpack: false,
    caller: { ...serverCaller('', signal), isAlone: () => false, holdAnswer: () => undefined },
    openStream() {
      throw new Error('a query answers whole');
    },
  };
  let answered = 0;
  let next = 0;
  const start = performance.now();
  const lane = async () => {
    while (performance.now() < start + durationMs) {
      const body = bodies[next % bodies.length];
      next += 1;
      const asked: RouteContext<Record<string, string>, unknown, unknown> = { ...shared, ...unused, body };
      const reply = await route.handler(asked);
      if (!(reply instanceof Reply) || reply.status !== 200) throw new Error('a query failed');
      answered += 1;
      // The answers of other threads are taken from the event loop.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return { requests: answered, perSecond: (answered * 1_000) / (performance.now() - start) };
}
