import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BackupPlace } from '../support/backup-place.ts';
import { changingCalls } from '../support/fault/fault-control.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { ModelService } from '../support/providers/model-service.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

const environment = {
  SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s',
  SUNDEW__TTL__SWEEP_INTERVAL: '100ms',
  SUNDEW__TTL__GRACE: '0s',
  SUNDEW__AUTH__ENABLED: 'true',
  SUNDEW__AUTH__ADMIN_PASSWORD: 'a long password of ann',
};
const authorization = `Basic ${Buffer.from('admin:a long password of ann').toString('base64')}`;

/** With the credential of the administrator. */
class AdminClient extends WireClient {
  override send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    return super.send(method, path, body, { authorization, ...headers });
  }
}

const readOnlyMessage = 'the data directory cannot be written: the server is read-only';

async function health(wire: WireClient): Promise<unknown[]> {
  const readiness = await fetch(`${wire.base}/readyz`);
  const { message } = (await wire.send('GET', '/db/v1/status')).body as { message: string };
  return [readiness.status, message];
}

const indexState = async (wire: WireClient) => {
  const { body } = await wire.send('GET', '/db/v1/tables/t/indexes/words');
  return (body as unknown as { status: { readiness: { state: string } } }).status.readiness.state;
};

const keys = ['!a', 'm', '~z'];

const addOne = (wire: WireClient, idempotencyKey: string) => {
  const transforms = keys.map((key) => ({ key, operations: [{ op: '$inc', path: 'n', value: 1 }] }));
  return wire.send('POST', '/db/v1/tables/t/batch', { transforms }, { 'idempotency-key': idempotencyKey });
};

test('S08: a disk that is read-only for a while refuses writes and nothing else, and all work goes on after it', async () => {
  await using service = new ModelService('openai');
  using archive = new BackupPlace();
  using place = new FaultPlace();
  {
    await using server = await place.start({ environment, arguments: ['--config', archive.configuration] });
    const wire = new AdminClient(server.url);
    const embedder = { provider: 'openai', model: 'words', dimensions: 8, url: `${service.url}/v1` };
    const words = { type: 'embeddings', field: 'text', embedder };
    await wire.createTable('t', { num_shards: 3, indexes: { words } });
    await wire.createTable('brief', { schema: { ttl: { duration: '2s' } } });
    const inserts = Object.fromEntries(keys.map((key) => [key, { text: 'amber', n: 0 }]));
    expect((await wire.batch('t', { inserts, sync_level: 'full_text' })).status).toBe(201);
    expect((await addOne(wire, 'one')).status).toBe(201);
    const brief = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`k${n}`, { text: 'brief' }]));
    expect((await wire.batch('brief', { inserts: brief })).status).toBe(201);
    // Vectors, checkpoints and removals are under way.
    const readOnly = place.control.arm({ calls: changingCalls, path: place.dataDir, action: 'EROFS' });
    for (const [method, path, body] of [
      ['POST', '/db/v1/tables/t/batch', { inserts: { '!a': { n: 99 } } }],
      ['POST', '/db/v1/tables/u', {}],
      ['DELETE', '/db/v1/tables/brief', undefined],
      ['PUT', '/db/v1/tables/t/schema', {}],
      ['POST', '/db/v1/tables/t/indexes/more', { type: 'full_text' }],
      ['PUT', '/db/v1/secrets/s', { value: 'x' }],
      ['POST', '/auth/v1/users/bob', { username: 'bob', password: 'a long password of bob' }],
    ] as const) {
      const answer = await wire.send(method, path, body);
      expect([path, answer]).toMatchObject([path, { status: 503, body: { code: 'read_only', retryable: true } }]);
    }
    expect(await addOne(wire, 'two')).toMatchObject({ status: 503, body: { code: 'read_only' } });
    const request = { backup_id: 'b', location: archive.location };
    const backup = await wire.send('POST', '/db/v1/backup', request);
    expect(backup.body).toMatchObject({ status: 'completed' });
    // Checkpoints, removals of expired documents and the look whether the disk takes writes again are refused meanwhile.
    for (let round = 0; round < 20; round += 1) {
      const since = readOnly.acted;
      await until(async () => readOnly.acted > since + 4);
      expect(await health(wire)).toEqual([503, expect.stringContaining(readOnlyMessage)]);
      expect((await wire.send('GET', '/db/v1/tables/t/lookup/m')).body).toMatchObject({ n: 1 });
      expect(await wire.count('t')).toBe(3);
    }
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    readOnly.disarm();
    await until(async () => (await health(wire))[0] === 200);
    for (const key of ['two', 'two', 'one']) expect((await addOne(wire, key)).status).toBe(201);
    for (const key of keys) {
      const { body } = await wire.send('GET', `/db/v1/tables/t/lookup/${encodeURIComponent(key)}`);
      expect(body).toMatchObject({ n: 2 });
    }
    await until(async () => (await wire.reportedDocuments()).get('brief') === 0);
    await until(async () => (await indexState(wire)) === 'ready');
    expect(await wire.send('POST', '/db/v1/tables/u', {})).toMatchObject({ status: 200 });
    const again = await wire.send('POST', '/db/v1/backup', { ...request, backup_id: 'c' });
    expect(again.body).toMatchObject({ status: 'completed' });
    // A checkpoint that came due while the disk was read-only is tried again within seconds.
    await until(async () => Bun.deepEquals(await health(wire), [200, '']));
    expect((await server.stop()).code).toBe(0);
  }
  const audited = readFileSync(join(place.dataDir, 'audit.jsonl'), 'utf8');
  for (const status of [503, 201]) expect(audited).toContain(`"status":${status}`);
  expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
}, 120_000);
