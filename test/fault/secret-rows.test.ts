import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ConnectionEntry } from '../../src/protocol/database/connections.ts';
import { UpstreamServer } from '../support/elsewhere/upstream-server.ts';
import type { ChildServer } from '../support/fault/child-server.ts';
import { until } from '../support/fault/until.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';
import { FaultPlace } from './fault-place.ts';

const timeout = { timeout: 120_000 };
const canary = 'canary-3e7d10b4';

async function put(server: ChildServer, key: string, value: string) {
  const answer = await fetch(`${server.url}/db/v1/secrets/${key}`, { method: 'PUT', body: JSON.stringify({ value }) });
  return { status: answer.status, body: (await answer.json()) as { code?: string } };
}

async function keys(server: ChildServer): Promise<string[]> {
  const { secrets } = (await (await fetch(`${server.url}/db/v1/secrets`)).json()) as { secrets: { key: string }[] };
  return secrets.map(({ key }) => key);
}

async function connections(server: ChildServer, query = ''): Promise<ConnectionEntry[]> {
  const answer = (await (await fetch(`${server.url}/db/v1/connections${query}`)).json()) as object;
  return (answer as { connections: ConnectionEntry[] }).connections;
}

describe('the file of secrets', () => {
  test('a kill at any step of a change leaves the secrets from before or after it', timeout, async () => {
    using place = new FaultPlace();
    {
      await using server = await place.start();
      expect((await put(server, 'kept', 'one')).status).toBe(200);
    }
    // The runtime opens and writes files past the library.
    const steps = ['sync', 'rename', 'directorySync'] as const;
    for (const step of steps) {
      await using server = await place.start();
      const path = step === 'directorySync' ? '' : 'secret-store';
      const rule = place.control.arm({ calls: [step], path, action: 'kill' });
      await put(server, step, canary).catch(() => undefined);
      expect(rule.acted).toBe(1);
      rule.disarm();
      await server.kill();
      await using again = await place.start();
      expect(await keys(again)).toContain('kept');
      expect((await put(again, 'after', step)).status).toBe(200);
      const { mode } = statSync(join(place.dataDir, 'secret-store.json'));
      expect(mode & 0o777).toBe(0o600);
    }
  });

  test('a full disk refuses a change, and nothing has changed', timeout, async () => {
    using place = new FaultPlace();
    await using server = await place.start();
    expect((await put(server, 'kept', 'one')).status).toBe(200);
    const file = join(place.dataDir, 'secret-store.json');
    const before = readFileSync(file, 'utf8');
    place.control.arm({ calls: ['sync'], path: 'secret-store', action: 'ENOSPC' });
    const refused = await put(server, 'more', canary);
    expect([refused.status, refused.body.code]).toEqual([507, 'insufficient_storage']);
    expect([await keys(server), readFileSync(file, 'utf8')]).toEqual([['kept'], before]);
    place.control.disarmAll();
    expect((await put(server, 'more', 'two')).status).toBe(200);
    expect(server.log).not.toContain(canary);
  });

  test('a refused change says whether it is there, and when to try again', timeout, async () => {
    using place = new FaultPlace();
    await using server = await place.start();
    expect((await put(server, 'kept', 'one')).status).toBe(200);
    place.control.arm({ calls: ['rename'], path: 'secret-store', action: 'ENOMEM', times: 1 });
    const refused = await put(server, 'more', canary);
    expect([refused.status, refused.body.code, await keys(server)]).toEqual([503, 'unavailable', ['kept']]);
    place.control.arm({ calls: ['directorySync'], path: `${place.dataDir}$`, action: 'EIO', times: 1 });
    const unsynced = await put(server, 'more', canary);
    expect(unsynced).toMatchObject({
      status: 503,
      body: { code: 'unavailable', message: expect.stringContaining('was changed') },
    });
    expect(await keys(server)).toEqual(['kept', 'more']);
  });
});

describe('the configuration', () => {
  test('connections come and go with SIGHUP, and a broken file changes nothing', timeout, async () => {
    using place = new FaultPlace();
    const config = join(place.directory, 'sundew.yaml');
    const write = (text: string) => writeFileSync(config, text);
    write('connections: {first: {kind: cdc, cdc: {provider: postgres}}}');
    await using server = await place.start({ arguments: ['--config', config] });
    const ids = async () => (await connections(server, '?types=cdc')).map(({ id }) => id);
    const generation = async () => {
      const status = (await (await fetch(`${server.url}/db/v1/status`)).json()) as {
        runtime_config: { generation: number; hash: string; reload_failures: number };
      };
      return status.runtime_config;
    };
    expect(await ids()).toEqual(['first']);
    const before = await generation();
    write('connections: {second: {kind: cdc, cdc: {provider: postgres}}}');
    process.kill(server.pid, 'SIGHUP');
    await until(async () => (await generation()).generation === before.generation + 1);
    expect(await ids()).toEqual(['second']);
    expect((await generation()).hash).not.toBe(before.hash);
    write('connections: {third: {kind: cdc}}');
    process.kill(server.pid, 'SIGHUP');
    await until(async () => (await generation()).reload_failures === 1);
    expect(await ids()).toEqual(['second']);
  });
});

describe('A05', () => {
  test('planted values of credentials are in no output of the server', timeout, async () => {
    using place = new FaultPlace();
    await using upstream = new UpstreamServer(({ authorization, text }) => {
      if (authorization !== `Bearer ${canary}-index`) {
        return Response.json({ error: { message: `refused: ${authorization} ${text}` } }, { status: 403 });
      }
      const { input } = JSON.parse(text) as { input: string | string[] };
      const data = [input].flat().map((_, index) => ({ index, embedding: [1, 0, 0] }));
      return Response.json({ model: 'm', data, usage: { prompt_tokens: 1, total_tokens: 1 } });
    });
    const config = join(place.directory, 'sundew.yaml');
    using folder = new TemporaryDirectory();
    const archive = folder.path;
    writeFileSync(
      config,
      `
connections:
  literal: {kind: inference, inference: {provider: openai, url: "${upstream.url}", api_key: "${canary}-literal"}}
  stored: {kind: inference, inference: {provider: openai, url: "${upstream.url}", api_key: "\${secret:stored}"}}
  archive: {kind: external_io, capabilities: [backup.write], external_io: {protocol: filesystem, root: "${archive}"}}
  changes: {kind: cdc, cdc: {provider: postgres, dsn: "postgres://u:${canary}@localhost/d"}}
providers:
  openai: {api_key: "${canary}-provider"}
partner: {client_secret: "${canary}-partner"}
`,
    );
    const environment = { OPENAI_API_KEY: `${canary}-environment` };
    const flags = ['--config', config, '--log-level', 'debug'];
    await using server = await place.start({ arguments: flags, environment });
    const told: string[] = [];
    const ask = async (path: string, method = 'GET', body?: unknown, base = server.url) => {
      const answer = await fetch(base + path, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      told.push(JSON.stringify([...answer.headers]), await answer.text());
    };
    await ask('/db/v1/secrets/stored', 'PUT', { value: `${canary}-stored` });
    for (const connection of ['literal', 'stored']) {
      await ask(`/db/v1/connections/${connection}/inference/embed`, 'POST', { model: 'm', input: 'a' });
      await ask(`/db/v1/connections/${connection}/inference/generate`, 'POST', {
        model: 'm',
        messages: [{ role: 'user', content: 'a' }],
        stream: true,
      });
    }
    await ask('/db/v1/tables/t', 'POST', {});
    const embedder = { provider: 'openai', model: 'm', url: upstream.url, api_key: `${canary}-index` };
    const index = { type: 'embeddings', field: 'body', dimension: 3, embedder };
    await ask('/db/v1/tables/t/indexes/managed', 'POST', index);
    const signed = { provider: 'bedrock', model: 'm', url: upstream.url, region: 'eu-west-1' };
    const keyPair = { access_key_id: `${canary}-id`, secret_access_key: `${canary}-signing` };
    await ask('/db/v1/tables/t/indexes/signed', 'POST', { ...index, embedder: { ...signed, ...keyPair } });
    for (const [name, more] of [
      ['keyed', { provider: 'openai', model: 'm', url: upstream.url, api_key: `${canary}-producer` }],
      ['half', { provider: 'openai', model: 'm', url: upstream.url, api_key: `\${secret:stored}${canary}-tail` }],
      ['signed', { ...signed, ...keyPair }],
    ] as const) {
      const producer_json = JSON.stringify({ type: 'generator', config: { ...more, prompt: '{{this}}' } });
      const enrichment = { kind: 'asset', field: 'body', producer_json };
      await ask(`/db/v1/tables/t/artifacts/${name}/enrichment`, 'PUT', enrichment);
    }
    for (const format of ['portable', 'native']) {
      await ask('/db/v1/backup', 'POST', { backup_id: format, location: `file://${archive}`, format });
    }
    const archived = readdirSync(archive, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
    const texts = archived.map(({ parentPath, name }) => {
      const bytes = readFileSync(join(parentPath, name));
      const isPacked = name.endsWith('.zst') && bytes.byteLength > 0;
      return isPacked ? Bun.zstdDecompressSync(bytes).toString() : bytes.toString();
    });
    told.push(...texts);
    expect(archived.filter(({ name }) => name.endsWith('-cluster-metadata.json'))).toHaveLength(2);
    expect(archived.some(({ name }) => name.includes('-image-'))).toBe(true);
    for (const kept of [/producer_json.*eu-west-1/s, /"managed".*embedder/s]) {
      expect(texts.some((text) => kept.test(text))).toBe(true);
    }
    await ask('/db/v1/connections?include=status,models');
    for (const path of ['secrets', 'status', 'cluster', 'tables', 'tables/t', 'tables/t/indexes', 'connections/none']) {
      await ask(`/db/v1/${path}`);
    }
    for (const path of ['/openapi.json', '/docs', '/readyz', '/healthz']) await ask(path);
    await ask('/metrics', 'GET', undefined, server.metricsUrl);
    expect(upstream.requests.length).toBeGreaterThan(3);
    const shown = Bun.spawnSync([process.execPath, 'src/main.ts', 'config', 'show', '--config', config], {
      cwd: join(import.meta.dir, '../..'),
    });
    expect(shown.exitCode).toBe(0);
    told.push(shown.stdout.toString(), shown.stderr.toString(), server.log);
    expect(shown.stdout.toString()).toContain('${secret:stored}');
    expect(told.filter((text) => text.includes(canary))).toEqual([]);
    const children = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && parentOf(pid) === server.pid);
    for (const pid of children) expect(readFileSync(`/proc/${pid}/environ`, 'latin1')).not.toContain(canary);
  });
});

function parentOf(pid: string): number {
  try {
    return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]);
  } catch {
    return 0;
  }
}
