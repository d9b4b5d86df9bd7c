import { describe, expect, test } from 'bun:test';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';

const timeout = { timeout: 120_000 };

describe('a keyed write whose answer a crash has lost', () => {
  test.each([
    ['storage.before-commit', ['k'], 0],
    ['storage.after-commit', ['k'], 1],
    ['redo.after-record', ['!', 'k', '~'], 1],
    ['redo.between-ranges', ['!', 'k', '~'], 1],
    ['redo.before-clear', ['!', 'k', '~'], 1],
  ])(
    'takes effect once when it is sent again: killed at %s',
    async (failpoint, keys, appliedBefore) => {
      using place = new FaultPlace();
      {
        await using server = await place.start();
        await new WireClient(server.url).createTable('t', { num_shards: 3 });
        await server.stop();
      }
      const body = {
        transforms: keys.map((key) => ({ key, operations: [{ op: '$inc', path: 'n', value: 1 }], upsert: true })),
      };
      const headers = { 'idempotency-key': 'one' };
      const send = (url: string) => new WireClient(url).send('POST', '/db/v1/tables/t/batch', body, headers);
      {
        await using server = await place.start({ failpoint });
        expect(await send(server.url).catch(() => undefined)).toBeUndefined();
        expect((await server.ended).signal).toBe('SIGKILL');
      }
      await using server = await place.start();
      const wire = new WireClient(server.url);
      const [first = ''] = keys;
      expect((await wire.lookup('t', first))?.document.n ?? 0).toBe(appliedBefore);
      for (let repetition = 0; repetition < 2; repetition += 1) {
        expect(await send(server.url)).toMatchObject({ status: 201, body: { transformed: keys.length } });
      }
      for (const key of keys) expect((await wire.lookup('t', key))?.document.n).toBe(1);
      const other = { ...body, deletes: ['gone'] };
      expect((await wire.send('POST', '/db/v1/tables/t/batch', other, headers)).status).toBe(409);
    },
    timeout,
  );
});
