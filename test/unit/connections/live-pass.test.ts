import { describe, expect, test } from 'bun:test';
import { configuredConnections, inferenceConnection } from '../../../src/connections/configured-connections.ts';
import type { Connection } from '../../../src/connections/connection.ts';
import { keptMs, LivePass } from '../../../src/connections/live-pass.ts';
import type { ProbeResult } from '../../../src/connections/probe.ts';
import { FakeClock, settle } from '../../support/fake-clock.ts';

function connection(id: string, url = 'http://localhost:1'): Connection {
  return { ...inferenceConnection({ provider: 'ollama', url }, new Map()), id };
}

/** A pass whose probes are held until they are let go. */
function setting() {
  const clock = new FakeClock();
  const probed: string[] = [];
  const held: (() => void)[] = [];
  const secrets = { generation: 0 };
  const pass = new LivePass({
    clock,
    secretsGeneration: () => secrets.generation,
    async probe({ id }): Promise<ProbeResult> {
      probed.push(id);
      await new Promise<void>((resolve) => held.push(resolve));
      return { status: 'connected' };
    },
  });
  const letGo = async () => {
    await settle();
    for (const release of held.splice(0)) release();
    await settle();
  };
  return { clock, secrets, probed, pass, letGo };
}

describe('a live pass', () => {
  test('looks once at what is asked for again within fifteen seconds', async () => {
    const { clock, probed, pass, letGo } = setting();
    const a = connection('a');
    const first = pass.results([a], false);
    await letGo();
    expect((await first).get('a')).toEqual({ status: 'connected' });
    await pass.results([a], false);
    expect(probed).toEqual(['a']);
    await clock.advance(keptMs);
    const later = pass.results([a], false);
    await letGo();
    await later;
    expect(probed).toEqual(['a', 'a']);
  });

  test('looks again once a secret has changed, also while it looked', async () => {
    const { secrets, probed, pass, letGo } = setting();
    const a = connection('a');
    const ask = async () => {
      const results = pass.results([a], false);
      await letGo();
      return (await results).get('a');
    };
    await ask();
    secrets.generation += 1;
    expect(await ask()).toEqual({ status: 'connected' });
    const during = pass.results([a], true);
    await settle();
    secrets.generation += 1;
    await letGo();
    expect((await during).get('a')).toEqual({ status: 'connected' });
    await ask();
    expect(probed).toEqual(['a', 'a', 'a', 'a']);
  });

  test('runs alone; those who come meanwhile share the next, and what the one before has found', async () => {
    const { probed, pass, letGo } = setting();
    const [a, b] = [connection('a'), connection('b')];
    const first = pass.results([a], false);
    await settle();
    const others = [pass.results([a, b], false), pass.results([b], false), pass.results([a], false)];
    await settle();
    expect(probed).toEqual(['a']);
    await letGo();
    await first;
    expect(probed).toEqual(['a', 'b']);
    await letGo();
    const found = await Promise.all(others);
    expect(found.map((results) => [...results.keys()])).toEqual([['a', 'b'], ['b'], ['a']]);
    expect(probed).toEqual(['a', 'b']);
  });

  test('looks again with refresh, once for all who ask for it together', async () => {
    const { probed, pass, letGo } = setting();
    const a = connection('a');
    const first = pass.results([a], false);
    await letGo();
    await first;
    const again = [pass.results([a], true), pass.results([a], true)];
    await letGo();
    await Promise.all(again);
    expect(probed).toEqual(['a', 'a']);
  });

  test('looks again at a connection that has changed', async () => {
    const { probed, pass, letGo } = setting();
    for (const url of ['http://localhost:1', 'http://localhost:2']) {
      const results = pass.results([connection('a', url)], false);
      await letGo();
      await results;
    }
    expect(probed).toEqual(['a', 'a']);
  });

  test('ends after ten seconds, and says nothing of those it had no time for', async () => {
    const { clock, probed, pass } = setting();
    const many = Array.from({ length: 40 }, (_, at) => connection(`c${at}`));
    const results = pass.results(many, false);
    await clock.advance(10_000);
    expect((await results).size).toBe(0);
    expect(probed.length).toBeLessThan(40);
  });
});

test('without a configuration there are the models of this server', () => {
  const none = { connections: new Map(), providers: new Map() };
  expect(configuredConnections(none).map(({ id }) => id)).toEqual(['local-inference']);
});
