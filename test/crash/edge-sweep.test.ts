import { expect, test } from 'bun:test';
import { FaultPlace } from '../fault/fault-place.ts';
import { offlineCheck } from '../fault/offline-check.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';

const environment = { SUNDEW__TTL__SWEEP_INTERVAL: '100ms' };
const path = '/db/v1/tables/t';

/** A document whose edges lead to these keys. */
function linked(...targets: string[]) {
  return { _edges: { g: { to: targets.map((target) => ({ target })) } } };
}

/** Edges of a node as `source>target`, once the index shows every write. */
async function arrows(wire: WireClient, key: string): Promise<string[]> {
  let shown: { edges: { source: string; target: string }[]; partial?: string } = { edges: [] };
  await until(async () => {
    const answer = await wire.expect(200, 'GET', `${path}/indexes/g/edges?key=${key}&direction=both`);
    shown = answer.body as typeof shown;
    return shown.partial === undefined;
  });
  return shown.edges.map(({ source, target }) => `${source}>${target}`);
}

/**
 * The edges of three ranges are three commits, the deletion is the next, then come those of the sweep: one for each of the
 * two ranges with edges to the deleted document, and one that forgets it.
 */
const places = [
  'storage.after-commit:3',
  'storage.before-commit:4',
  'storage.after-commit:4',
  'storage.before-commit:5',
];
const later = ['storage.after-commit:5', 'storage.before-commit:6', 'storage.after-commit:6'];

test.each([...places, ...later])(
  'a kill at %s, between a deletion and the end of its sweep, brings no edge back',
  async (failpoint) => {
    using place = new FaultPlace();
    {
      await using server = await place.start({ failpoint, environment });
      const wire = new WireClient(server.url);
      await wire.createTable('t', { num_shards: 3 });
      await wire.expect(201, 'POST', `${path}/indexes/g`, { type: 'graph' });
      const inserts = { '!a': linked('m', '~z'), m: linked('!a', '~z'), '~z': linked('m', '!a') };
      await wire.expect(201, 'POST', `${path}/batch`, { inserts });
      // Killed behind its commit, the deletion is not answered.
      await wire.batch('t', { deletes: ['m'] }).catch(() => undefined);
      expect((await server.ended).signal).toBe('SIGKILL');
    }
    {
      await using server = await place.start();
      const wire = new WireClient(server.url);
      expect(await arrows(wire, 'm')).toEqual([]);
      expect(await arrows(wire, '!a')).toEqual(['!a>~z', '~z>!a']);
      // A document that comes back under its key has none of the old edges.
      await wire.batch('t', { inserts: { m: {} } });
      expect(await arrows(wire, 'm')).toEqual([]);
    }
    {
      // The sweep goes on where it was, and takes nothing that was written since.
      await using server = await place.start({ environment });
      const wire = new WireClient(server.url);
      await wire.batch('t', { inserts: { '~z': linked('m') } });
      expect(await arrows(wire, 'm')).toEqual(['~z>m']);
      await wire.batch('t', { deletes: ['m'] });
      await wire.batch('t', { inserts: { m: linked('!a') } });
      expect(await arrows(wire, 'm')).toEqual(['m>!a']);
      expect((await server.stop()).code).toBe(0);
    }
    expect(offlineCheck(place.dataDir)).toMatchObject({ code: 0 });
  },
  120_000,
);
