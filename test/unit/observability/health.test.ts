import { describe, expect, test } from 'bun:test';
import { type Fault, Health, stateOf } from '../../../src/observability/health.ts';

const diskFull: Fault = { kind: 'disk_full', blocks: 'writes', message: 'the disk is full' };
const damaged: Fault = { kind: 'file_damaged', rangeId: 7, blocks: 'reads', message: 'damaged' };
const failed: Fault = { kind: 'index_failed', rangeId: 7, index: 'i', blocks: 'nothing', message: 'failed' };

describe('health', () => {
  test('a fault of the node that blocks makes it unhealthy, one of a range degrades it', () => {
    const health = new Health();
    expect(health.state).toBe('healthy');
    health.raise(failed);
    expect([health.state, health.blocking()]).toEqual(['degraded', []]);
    health.raise(damaged);
    expect([health.state, stateOf(health.faults(), 'range')]).toEqual(['degraded', 'unhealthy']);
    health.raise(diskFull);
    expect([health.state, health.blocking()]).toEqual(['unhealthy', [damaged, diskFull]]);
    health.clear('disk_full');
    health.clear('file_damaged', { rangeId: 7 });
    expect(health.faults()).toEqual([failed]);
    health.clear('index_failed', { rangeId: 7, index: 'another' });
    expect(health.state).toBe('degraded');
    health.forgetRange(7);
    expect(health.state).toBe('healthy');
  });

  test('its observer hears of every fault, and whether it stood already', () => {
    const heard: unknown[] = [];
    const health = new Health({
      raised: ({ kind }, isNew) => heard.push([kind, isNew]),
      cleared: ({ kind }) => heard.push([kind, 'over']),
    });
    health.raise(diskFull);
    health.raise({ ...diskFull, message: 'still full' });
    health.clear('disk_full');
    health.clear('disk_full');
    expect(heard).toEqual([
      ['disk_full', true],
      ['disk_full', false],
      ['disk_full', 'over'],
    ]);
  });

  test('a damaged document is counted once, and forgotten when a pass over its range finds it mended', () => {
    const counted: number[] = [];
    const health = new Health({ documentDamaged: (rangeId) => counted.push(rangeId) });
    for (const key of ['a', 'b', 'a']) health.documentDamaged(3, key);
    health.documentDamaged(4, 'a');
    expect(counted).toEqual([3, 3, 4]);
    expect(health.faults().map(({ rangeId, message }) => [rangeId, message.split(';')[0]])).toEqual([
      [3, '2 stored documents are damaged'],
      [4, 'one stored document is damaged'],
    ]);
    health.rangeRead(3, new Set(['b']));
    health.rangeRead(4, new Set());
    expect(health.faults().map(({ rangeId }) => rangeId)).toEqual([3]);
    health.documentDamaged(3, 'a');
    expect(counted).toEqual([3, 3, 4, 3]);
  });
});
