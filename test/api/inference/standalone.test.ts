import { describe, expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { loadConfig } from '../../../src/config/load.ts';
import { RunningConfig } from '../../../src/config/reload.ts';
import { ServerListener } from '../../../src/http/listener/server-listener.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/observability/line-logger.ts';
import { startInferenceServer } from '../../../src/server/start-inference-server.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixtures = Bun.fileURLToPath(new URL('../../fixtures/', import.meta.url));
const main = Bun.fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

async function standalone() {
  const flags = new Map([
    ['--models-dir', `${fixtures}models`],
    ['--ml-dir', `${fixtures}predictors`],
  ]);
  const load = () => loadConfig({ flags, environment: {}, file: undefined, readFile: () => '' });
  const server = await startInferenceServer({
    config: new RunningConfig(load(), load),
    listener: new ServerListener('127.0.0.1', 0),
    logger: createLogger({ level: 'error', format: 'json', clock: systemClock, write: () => undefined }),
    clock: systemClock,
  });
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(server.url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.startsWith('application/json') ?? false;
    return { status: response.status, body: json ? JSON.parse(text) : text };
  };
  const dispose = async () => {
    await server.drain(1_000);
    await server.stop();
  };
  return { ask, [Symbol.asyncDispose]: dispose };
}

describe('a server of inference alone', () => {
  test('answers both planes of inference, the bare spellings, probes and metrics, and nothing of the database', async () => {
    await using server = await standalone();
    const { body } = await server.ask('GET', '/ai/v1/models');
    expect(body.data.map(({ id }: { id: string }) => id)).toContain('tiny-bert');
    expect((await server.ask('GET', '/models')).body).toEqual(body);
    expect((await server.ask('GET', '/ml/v1/models')).body.object).toBe('list');
    expect((await server.ask('GET', '/healthz')).body).toEqual({ status: 'ok' });
    expect((await server.ask('GET', '/readyz')).body).toMatchObject({
      status: 'ready',
      models: { generators: Object.keys(body.generators).length, embedders: Object.keys(body.embedders).length },
    });
    for (const path of ['/metrics', '/ai/v1/metrics']) {
      expect((await server.ask('GET', path)).body).toContain('sundew_http_requests_total');
    }
    expect((await server.ask('GET', '/db/v1/tables')).status).toBe(404);
  });

  test('embeds under every spelling, and has one shape of errors', async () => {
    await using server = await standalone();
    const request = { model: 'tiny-bert', input: 'tea' };
    const { status, body } = await server.ask('POST', '/ai/v1/embeddings', request);
    expect([status, body.data[0].embedding.length]).toEqual([200, 32]);
    for (const path of ['/embed', '/embeddings'])
      expect((await server.ask('POST', path, request)).body.data).toEqual(body.data);
    for (const path of ['/nothing', '/embed']) {
      const refused = await server.ask('GET', path);
      expect(Object.keys(refused.body)).toEqual(['error', 'message', 'reason', 'retryable', 'retry_after_ms']);
    }
  });
});

describe('sundew inference serve', () => {
  function start(directory: string, listen: string, ...more: string[]) {
    return Bun.spawn(
      [process.execPath, main, 'inference', 'serve', '--listen', listen, '--log-format', 'json', ...more],
      {
        cwd: directory,
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, NO_COLOR: '1' },
      },
    );
  }

  test.each([
    ['127.0.0.1:0', []],
    ['0.0.0.0:0', ['--allow-insecure-public-bind']],
  ])('listens on %s with %p, opens no storage, and stops when told to', async (listen, flags) => {
    using directory = new TemporaryDirectory();
    const child = start(directory.path, listen, ...flags);
    let log = '';
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
      log += text;
      const url = /"msg":"ready","url":"([^"]+)"/.exec(log)?.[1];
      if (url === undefined) continue;
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      child.kill('SIGTERM');
      break;
    }
    expect(await child.exited).toBe(0);
    expect(readdirSync(directory.path)).toEqual([]);
  });

  test('refuses a configuration that asks for credentials or TLS, of which it has neither', async () => {
    using directory = new TemporaryDirectory();
    for (const [name, file] of [
      ['auth.enabled', 'auth: {enabled: true}'],
      ['tls.cert', 'tls: {cert: /a, key: /b}'],
    ] as const) {
      const path = `${directory.path}/sundew.yaml`;
      writeFileSync(path, file);
      const child = start(directory.path, '127.0.0.1:0', '--config', path);
      const log = await new Response(child.stderr).text();
      expect([await child.exited, log]).toEqual([2, expect.stringContaining(`leave ${name} out`)]);
    }
  });

  test.each(['0.0.0.0:0', '[::]:0', ':0'])('refuses %s', async (listen) => {
    using directory = new TemporaryDirectory();
    const child = start(directory.path, listen);
    const log = await new Response(child.stderr).text();
    expect([await child.exited, log]).toEqual([2, expect.stringContaining('--allow-insecure-public-bind')]);
  });
});
