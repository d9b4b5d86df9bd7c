import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { healthRoutes } from '../../../src/http/routing/health.ts';
import { defineRoute } from '../../../src/http/routing/route.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { Metrics } from '../../../src/observability/metrics.ts';
import { startMetricsServer } from '../../../src/observability/metrics-server.ts';
import { Readiness } from '../../../src/observability/readiness.ts';
import { ChildServer } from '../../support/fault/child-server.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { testListener } from '../../support/test-listener.ts';

describe('probes', () => {
  test('both listeners answer liveness, and readiness with the names of what fails', async () => {
    const readiness = new Readiness();
    let fine = true;
    readiness.add('storage', () => fine);
    readiness.add('other', () => true);
    await using server = testListener({ routes: healthRoutes(readiness) });
    const metrics = startMetricsServer('127.0.0.1', 0, new Metrics(), readiness);
    try {
      for (const url of [server.url, `http://127.0.0.1:${metrics.port}`]) {
        fine = true;
        for (const path of ['/healthz', '/livez']) {
          const live = await fetch(url + path);
          expect([live.status, await live.json()]).toEqual([200, { status: 'ok' }]);
        }
        expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: 'ready' });
        fine = false;
        const failing = await fetch(`${url}/readyz`);
        expect([failing.status, await failing.json()]).toEqual([503, { status: 'not_ready', failing: ['storage'] }]);
        expect((await fetch(`${url}/healthz`)).status).toBe(200);
      }
    } finally {
      await metrics.stop();
    }
  });

  test('/metrics is on the metrics port only, in the text format', async () => {
    const metrics = new Metrics();
    metrics.increment('httpRequests', ['/x', 'GET', '200']);
    const server = startMetricsServer('127.0.0.1', 0, metrics, new Readiness());
    try {
      const response = await fetch(`http://127.0.0.1:${server.port}/metrics`);
      expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(await response.text()).toContain('sundew_http_requests_total{route="/x",method="GET",code="200"} 1\n');
      expect((await fetch(`http://127.0.0.1:${server.port}/db/v1/tables`)).status).toBe(404);
    } finally {
      await server.stop();
    }
  });
});

test('a port for metrics that is taken is named, with what to do', async () => {
  const taken = startMetricsServer('127.0.0.1', 0, new Metrics(), new Readiness());
  try {
    const start = () => startMetricsServer('127.0.0.1', taken.port, new Metrics(), new Readiness());
    expect(start).toThrow(`the port ${taken.port} of 127.0.0.1 for metrics cannot be opened: `);
    expect(start).toThrow('--metrics-port');
  } finally {
    await taken.stop();
  }
});

describe('draining', () => {
  const release = Promise.withResolvers<object>();
  const arrived = Promise.withResolvers<void>();
  const wait = defineRoute({
    method: 'GET',
    path: '/wait',
    access: 'open',
    summary: 'Waits',
    tag: 'test',
    responses: { 200: { description: 'Released' } },
    handler: () => {
      arrived.resolve();
      return release.promise;
    },
  });

  test('a request in flight is finished, a new connection is refused', async () => {
    await using server = testListener({ routes: [wait] });
    const answer = fetch(`${server.url}/wait`);
    await arrived.promise;
    const drained = server.listener.drain(server.app, 10_000, systemClock);
    const late = fetch(`${server.url}/wait`).then(
      (response) => response.status,
      () => 'refused',
    );
    expect([503, 'refused']).toContain(await late);
    release.resolve({ done: true });
    expect(await (await answer).json()).toEqual({ done: true });
    expect(await drained).toBe(0);
  });

  test('a request that does not finish in time is answered 503 and counted', async () => {
    const never = defineRoute({ ...wait, path: '/never', handler: () => new Promise<object>(() => {}) });
    await using server = testListener({ routes: [never] });
    const answer = fetch(`${server.url}/never`);
    while (server.app.inFlight.count === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await server.listener.drain(server.app, 1, systemClock)).toBe(1);
    expect(await (await answer).json()).toMatchObject({ code: 'unavailable', retryable: true });
  });
});

describe('the process', () => {
  test('starts, says so in JSON lines, stops cleanly on SIGTERM, and starts again', async () => {
    using directory = new TemporaryDirectory();
    for (let round = 0; round < 2; round += 1) {
      await using server = await ChildServer.start({ dataDir: join(directory.path, 'data') });
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
      expect(await (await fetch(`${server.metricsUrl}/metrics`)).text()).toContain('sundew_build_info{version=');
      expect(await server.stop()).toEqual({ code: 0, signal: null });
      const lines = server.log
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { ts: string; level: string; msg: string });
      expect(lines.map(({ msg }) => msg)).toEqual(expect.arrayContaining(['ready', 'stopping', 'stopped']));
      for (const { ts, level } of lines) {
        expect(new Date(ts).toISOString()).toBe(ts);
        expect(['info', 'warn']).toContain(level);
      }
    }
  });

  test('SIGHUP with a broken file keeps what ran, and status counts it; a good one moves the log level', async () => {
    using directory = new TemporaryDirectory();
    const file = directory.write('sundew.yaml', 'log:\n  level: info\n');
    await using server = await ChildServer.start({
      dataDir: join(directory.path, 'data'),
      arguments: ['--config', file],
    });
    const statusAfter = async (text: string, member: 'reload_successes' | 'reload_failures') => {
      directory.write('sundew.yaml', text);
      process.kill(server.pid, 'SIGHUP');
      for (;;) {
        const status = (await (await fetch(`${server.url}/db/v1/status`)).json()) as {
          runtime_config: Record<string, unknown>;
        };
        if (status.runtime_config[member] === 1) return status.runtime_config;
      }
    };
    expect(await statusAfter('log:\n  levle: debug\n', 'reload_failures')).toMatchObject({
      generation: 1,
      last_reload_failed: true,
    });
    expect(server.log).toContain('did you mean log.level?');
    expect(await statusAfter('log:\n  level: debug\n', 'reload_successes')).toMatchObject({
      generation: 2,
      last_reload_failed: false,
    });
    await fetch(`${server.url}/healthz`);
    expect(await server.stop()).toMatchObject({ code: 0 });
    expect(server.log).toContain('"msg":"request"');
  });

  test.each([
    ['an unknown option', ['--prot', '1'], 'did you mean --port?'],
    ['a value that is none', ['--drain-deadline', 'soon'], '--drain-deadline must be a duration'],
    ['a file that is not there', ['--config', '/nonexistent/sundew.yaml'], 'cannot be read'],
  ])('%s ends it with exit code 2 and one sentence', async (_what, words, sentence) => {
    using directory = new TemporaryDirectory();
    await using server = await ChildServer.spawn({ dataDir: join(directory.path, 'data'), arguments: words });
    expect(await server.ended).toEqual({ code: 2, signal: null });
    expect(server.log).toContain(sentence);
    expect(server.log.trim().split('\n')).toHaveLength(1);
  });
});
