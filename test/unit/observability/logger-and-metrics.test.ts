import { describe, expect, test } from 'bun:test';
import { startEventLoopMonitor } from '../../../src/observability/event-loop-monitor.ts';
import { createLogger } from '../../../src/observability/line-logger.ts';
import type { MetricDefinition } from '../../../src/observability/metric-definitions.ts';
import { metricDefinitions } from '../../../src/observability/metric-definitions.ts';
import { Metrics } from '../../../src/observability/metrics.ts';
import { connectionsIn } from '../../../src/observability/open-connections.ts';
import { logSlowQuery } from '../../../src/server/observability/slow-query-log.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function logger(format: 'json' | 'text', level: 'debug' | 'info' = 'info') {
  const lines: string[] = [];
  const clock = new FakeClock(Date.UTC(2026, 1, 3, 4, 5, 6, 7));
  return { lines, logger: createLogger({ format, level, clock, write: (line) => void lines.push(line) }) };
}

describe('logger', () => {
  test('a JSON line has time, level, message, component and fields, and ends with a line feed', () => {
    const { lines, logger: log } = logger('json');
    log.component('http').info('request\n"done"', { request_id: 'r', duration_ms: 1.5, table: undefined });
    expect(lines[0]).toEndWith('}\n');
    expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1);
    expect(JSON.parse(lines[0] ?? '')).toEqual({
      ts: '2026-02-03T04:05:06.007Z',
      level: 'info',
      msg: 'request\n"done"',
      component: 'http',
      request_id: 'r',
      duration_ms: 1.5,
    });
  });

  test('lost lines are told with the next one: as a warning, or as an error where nothing else is logged', () => {
    for (const [level, told] of [
      ['info', 'warn'],
      ['error', 'error'],
    ] as const) {
      const lines: string[] = [];
      let isLost = true;
      const write = (line: string) => !isLost && lines.push(line) > 0;
      const log = createLogger({ format: 'json', level, clock: new FakeClock(), write });
      for (let number = 0; number < 3; number += 1) log.error('lost');
      isLost = false;
      log.error('heard');
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: 'heard' }, { level: told, lost: 3 }]);
    }
  });

  test('an error has its code, message, stack and causes, but never without end', () => {
    const { lines, logger: log } = logger('json');
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'disk' });
    log.error('failed', {}, error);
    const { err } = JSON.parse(lines[0] ?? '') as { err: { stack: string } };
    expect(err).toMatchObject({ code: 'disk', message: 'outer', cause: { message: 'inner' } });
    expect(err.stack).toContain('logger-and-metrics.test.ts');
    const circular = new Error('round');
    circular.cause = circular;
    log.warn('again', {}, circular);
    log.warn('no error at all', {}, 'text');
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({ err: { message: 'text' } });
  });

  test('the level is shared by all components and can be moved', () => {
    const { lines, logger: log } = logger('json');
    const part = log.component('part');
    part.debug('hidden');
    log.level = 'debug';
    part.debug('shown');
    log.level = 'error';
    part.warn('hidden');
    expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(['shown']);
    expect(part.level).toBe('error');
  });

  test('text is one line for a terminal', () => {
    const { lines, logger: log } = logger('text');
    log.warn('slow query', { table: 'books', note: 'two words', none: undefined });
    expect(lines).toEqual(['2026-02-03T04:05:06.007Z WARN  slow query table=books note="two words"\n']);
  });
});

describe('metrics', () => {
  test('counters, gauges and histograms in the text format', async () => {
    const metrics = new Metrics();
    metrics.increment('httpRequests', ['/a', 'GET', '200']);
    metrics.increment('httpRequests', ['/a', 'GET', '200'], 2);
    metrics.set('tables', [], 4);
    metrics.observe('queryStage', ['plan'], 0.0005);
    metrics.observe('queryStage', ['plan'], 0.02);
    metrics.observe('queryStage', ['plan'], 99);
    const text = await metrics.render();
    expect(text).toContain(
      '# TYPE sundew_http_requests_total counter\nsundew_http_requests_total{route="/a",method="GET",code="200"} 3\n',
    );
    expect(text).toContain('# HELP sundew_tables Tables.\n# TYPE sundew_tables gauge\nsundew_tables 4\n');
    expect(text).toContain('sundew_query_stage_duration_seconds_bucket{le="0.0005",stage="plan"} 1\n');
    expect(text).toContain('sundew_query_stage_duration_seconds_bucket{le="0.01",stage="plan"} 1\n');
    expect(text).toContain('sundew_query_stage_duration_seconds_bucket{le="0.025",stage="plan"} 2\n');
    expect(text).toContain('sundew_query_stage_duration_seconds_bucket{le="+Inf",stage="plan"} 3\n');
    expect(text).toContain('sundew_query_stage_duration_seconds_sum{stage="plan"} 99.0205\n');
    expect(text).toContain('sundew_query_stage_duration_seconds_count{stage="plan"} 3\n');
  });

  test('label values are escaped', async () => {
    const metrics = new Metrics();
    metrics.set('documents', ['a"b\\c\nd'], 1);
    expect(await metrics.render()).toContain('sundew_documents{table="a\\"b\\\\c\\nd"} 1\n');
  });

  test('collectors refresh gauges at every scrape, and cleared ones do not linger', async () => {
    const metrics = new Metrics();
    let names = ['a', 'b'];
    metrics.onCollect(() => {
      metrics.clear('documents');
      for (const name of names) metrics.set('documents', [name], 1);
    });
    expect(await metrics.render()).toContain('{table="b"}');
    names = ['a'];
    expect(await metrics.render()).not.toContain('{table="b"}');
  });

  test('the wrong number of labels is a fault', () => {
    expect(() => new Metrics().increment('httpRequests', ['/a'])).toThrow('takes the labels');
  });

  const definitions = Object.values(metricDefinitions) as MetricDefinition[];
  test.each(definitions)('$name follows the naming rules', ({ name, kind, buckets }) => {
    expect(name).toMatch(/^(sundew|process)_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(kind === 'counter');
    if (kind === 'histogram') expect(buckets).toEqual([...(buckets ?? [])].sort((a, b) => a - b));
  });

  test('names are unique', () => {
    expect(new Set(definitions.map(({ name }) => name)).size).toBe(definitions.length);
  });
});

test('connections are counted by the port of their own side', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue',
    '   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000',
    '   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000',
    '   2: 0100007F:C350 0100007F:1F90 01 00000000:00000000',
    '   3: 0100007F:1F90 0100007F:C351 06 00000000:00000000',
    '',
  ].join('\n');
  expect([connectionsIn(table, 8_080), connectionsIn(table, 80)]).toEqual([1, 0]);
});

describe('slow queries', () => {
  const report = {
    table: 'books',
    stages: { plan: 1, search: 2 },
    tookMs: 3,
    request: { full_text_search: { query: 'x' } },
  };
  const lineOf = (shown: 'hash' | 'text' | 'none', request: unknown = report.request) => {
    const { lines, logger: log } = logger('json');
    logSlowQuery(log, { ...report, request }, shown);
    return JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  };

  test('are logged with their stages and what the option says of them', () => {
    const line = { msg: 'slow query', table: 'books', duration_ms: 3, plan_ms: 1, search_ms: 2 };
    expect(lineOf('none')).toMatchObject(line);
    expect(lineOf('none')).not.toHaveProperty('query_hash');
    expect(lineOf('hash').query_hash).toMatch(/^[0-9a-f]{16}$/);
    expect(lineOf('hash')).not.toHaveProperty('query');
    expect(lineOf('text')).toMatchObject({ ...line, query: '{"full_text_search":{"query":"x"}}' });
  });

  test('equal ones have equal hashes, long ones are cut', () => {
    expect(lineOf('hash').query_hash).toBe(lineOf('text').query_hash);
    expect(lineOf('hash', { limit: 1 }).query_hash).not.toBe(lineOf('hash').query_hash);
    expect((lineOf('text', { query: 'y'.repeat(10_000) }).query as string).length).toBeLessThan(2_100);
  });
});

describe('event loop monitor', () => {
  test('counts on-time ticks and keeps the longest stall', async () => {
    const clock = new FakeClock();
    const metrics = new Metrics();
    const stop = startEventLoopMonitor(clock, metrics);
    await clock.advance(500);
    expect(await metrics.render()).toContain('sundew_event_loop_stall_seconds_bucket{le="0.001"} 5\n');
    expect(await metrics.render()).toContain('sundew_event_loop_stall_max_seconds 0\n');
    stop();
    await clock.advance(1_000);
    expect(await metrics.render()).toContain('sundew_event_loop_stall_seconds_count 5\n');
  });
});
