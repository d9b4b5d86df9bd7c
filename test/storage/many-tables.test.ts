import { expect, setDefaultTimeout, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ChildServer } from '../support/fault/child-server.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(120_000);

const tables = 40;
const openMax = 4;
const environment = {
  SUNDEW__STORAGE__OPEN_RANGES: String(openMax),
  SUNDEW__STORAGE__RANGE_IDLE: '1s',
};

interface TopologyRange {
  table_name: string;
  state: string;
  doc_count: number;
  disk_bytes: number;
  empty: boolean;
}

/** A server that keeps few ranges open, and what it tells of all of them. */
async function start(dataDir: string) {
  const server = await ChildServer.start({ dataDir, environment });
  const wire = new WireClient(server.url);
  const metrics = async () => {
    const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
    return new Map(
      text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );
  };
  const opened = async () => (await metrics()).get('sundew_ranges_opened_total');
  const topology = async () => {
    const { body } = await wire.expect(200, 'GET', '/db/v1/cluster');
    return (body as unknown as { data: { ranges: TopologyRange[] } }).data.ranges;
  };
  /**
   * Documents of each table, by the topology and by the metrics, which must agree. A scrape leaves out a table of which
   * a range is just being closed, if no scrape before told of it.
   */
  const documents = async () => {
    const ranges = await topology();
    const counted = Object.fromEntries(ranges.map((range) => [range.table_name, range.doc_count]));
    const metricOf = (table: string) => `sundew_documents{table="${table}"}`;
    let measured = new Map<string, number>();
    await until(async () => {
      measured = await metrics();
      return Object.keys(counted).every((table) => measured.has(metricOf(table)));
    });
    expect(Object.fromEntries(Object.keys(counted).map((table) => [table, measured.get(metricOf(table))]))).toEqual(
      counted,
    );
    return counted;
  };
  return { server, wire, metrics, opened, topology, documents };
}

const nameOf = (table: number) => `t${table}`;

test('tables beyond those that may be open are listed, measured and dropped without being opened, also after a restart', async () => {
  using directory = new TemporaryDirectory();
  const dataDir = join(directory.path, 'data');
  const expected: Record<string, number> = {};
  {
    const { server, wire, metrics, opened, topology, documents } = await start(dataDir);
    await using _ = server;
    for (let table = 0; table < tables; table += 1) await wire.createTable(nameOf(table));
    expect([await opened(), (await topology()).every(({ empty, state }) => empty && state === 'healthy')]).toEqual([
      0,
      true,
    ]);
    for (let table = 0; table < tables; table += 1) {
      const inserts = Object.fromEntries(
        Array.from({ length: 1 + (table % 3) }, (_, at) => [`k${at}`, { words: 'amber' }]),
      );
      await wire.batch(nameOf(table), { inserts, ...(table % 2 === 0 ? { sync_level: 'full_text' } : {}) });
      expected[nameOf(table)] = Object.keys(inserts).length;
    }
    const before = await opened();
    expect(await documents()).toEqual(expected);
    expect(((await wire.expect(200, 'GET', '/db/v1/tables')).body as unknown[]).length).toBe(tables);
    expect(await opened()).toBe(before ?? 0);
    const now = await metrics();
    expect(now.get('sundew_open_ranges')).toBeLessThanOrEqual(openMax);
    expect(now.get('sundew_ranges_evicted_total')).toBeGreaterThanOrEqual(tables - openMax);
    expect(now.get('sundew_index_lag_sequence{table="t0",index="full_text_index_v0"}')).toBe(0);
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  }
  const { server, wire, opened, topology, documents } = await start(dataDir);
  await using _ = server;
  expect(await documents()).toEqual(expected);
  expect((await topology()).every(({ state, disk_bytes }) => state === 'healthy' && disk_bytes > 0)).toBe(true);
  expect(await opened()).toBe(0);
  for (let table = 0; table < tables; table += 1) await wire.expect(204, 'DELETE', `/db/v1/tables/${nameOf(table)}`);
  expect([await topology(), await opened()]).toEqual([[], 0]);
  expect(readdirSync(join(dataDir, 'ranges'))).toEqual([]);
});

test('after a kill the listing tells what was acknowledged, and only ranges that were written since are opened', async () => {
  using directory = new TemporaryDirectory();
  const dataDir = join(directory.path, 'data');
  const expected: Record<string, number> = {};
  {
    const { server, wire } = await start(dataDir);
    await using _ = server;
    for (let table = 0; table < tables; table += 1) {
      await wire.createTable(nameOf(table));
      await wire.batch(nameOf(table), { inserts: { a: { words: 'amber' } }, sync_level: 'full_text' });
      expected[nameOf(table)] = 1;
    }
    await server.stop();
  }
  const written = [3, 17, 30];
  {
    const { server, wire } = await start(dataDir);
    await using _ = server;
    for (const table of written) {
      await wire.batch(nameOf(table), { inserts: { b: { words: 'amber' } } });
      expected[nameOf(table)] = 2;
    }
    await server.kill();
  }
  const { server, opened, documents } = await start(dataDir);
  await using _ = server;
  expect(await documents()).toEqual(expected);
  expect(await opened()).toBe(written.length);
});

test('tables at rest cost no descriptor', async () => {
  using directory = new TemporaryDirectory();
  const dataDir = join(directory.path, 'data');
  const server = await ChildServer.start({
    dataDir,
    environment: { ...environment, SUNDEW__STORAGE__OPEN_RANGES: '512' },
    openFilesMax: 1_024,
  });
  await using _ = server;
  const wire = new WireClient(server.url);
  const descriptors = () => readdirSync(`/proc/${server.pid}/fd`).length;
  const before = descriptors();
  const many = 100;
  for (let table = 0; table < many; table += 1) {
    await wire.createTable(nameOf(table));
    await wire.batch(nameOf(table), { inserts: { a: { words: 'amber' } } });
  }
  // The limit of descriptors allows for 64 open ranges, which are also those that stay open.
  await until(async () => descriptors() - before < 64 * 6);
  const text = await (await fetch(`${server.metricsUrl}/metrics`)).text();
  expect(text).toContain('sundew_open_ranges_max 64\n');
  expect(Number(/^sundew_open_ranges (\d+)$/m.exec(text)?.[1])).toBeLessThanOrEqual(64);
  expect(Number(/^process_open_fds (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(64);
  expect(text).toContain('process_max_fds 1024\n');
  expect(Number(/^sundew_disk_free_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
  expect(Number(/^sundew_wal_bytes (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
  expect(Number(/^sundew_http_connections (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
});

test('tables that are written in turn hold no threads, and have nothing to replay after a stop', async () => {
  using directory = new TemporaryDirectory();
  const dataDir = join(directory.path, 'data');
  const many = 60;
  {
    await using server = await ChildServer.start({ dataDir });
    const wire = new WireClient(server.url);
    for (let table = 0; table < many; table += 1) await wire.createTable(nameOf(table));
    const threads = () => readdirSync(`/proc/${server.pid}/task`).length;
    const before = threads();
    const seen: number[] = [];
    for (const key of ['a', 'b']) {
      for (let table = 0; table < many; table += 1) {
        await wire.batch(nameOf(table), { inserts: { [key]: { words: 'amber' } }, sync_level: 'full_text' });
        seen.push(threads());
      }
    }
    // The process has threads for queries and merges, however many tables there are.
    expect(Math.max(...seen) - before).toBeLessThan(many / 2);
    for (let table = 0; table < many; table += 1)
      await wire.batch(nameOf(table), { inserts: { c: { words: 'amber' } } });
    expect(await server.stop()).toEqual({ code: 0, signal: null });
  }
  const { server, opened, documents } = await start(dataDir);
  await using _ = server;
  expect(Object.values(await documents())).toEqual(Array.from({ length: many }, () => 3));
  expect(await opened()).toBe(0);
});
