import { expect, test } from 'bun:test';
import { Value } from '@sinclair/typebox/value';
import { parseDuration } from '../../../src/lib/duration.ts';
import { pathsRequest, traverseRequest } from '../../../src/protocol/database/graphs.ts';
import { durationPattern } from '../../../src/protocol/documented-text.ts';
import { readPaths, readTraverse } from '../../../src/query/request/graph/graph-request.ts';

const choice = {
  edge_types: ['a'],
  direction: 'both',
  min_weight: 1,
  max_weight: 2,
  node_filter: { filter_query: { match_all: {} }, filter_prefix: 'a' },
};

/** Whether a reader takes the body. */
const isTaken = (read: () => unknown) => {
  try {
    read();
    return true;
  } catch {
    return false;
  }
};

test('bodies of traversals and searches for paths are documented as they are read', () => {
  const flags = { deduplicate_nodes: false, include_paths: true, include_edges: true, include_documents: true };
  const traverse = { ...choice, ...flags, fields: ['a'], max_depth: 50, max_results: 0 };
  const paths = { ...choice, source: 'a', target: 'b', max_depth: 50, weight_mode: 'max_weight', k: 100 };
  expect(Object.keys({ ...traverse, start: 'a', start_nodes: {} }).sort()).toEqual(
    Object.keys(traverseRequest.properties).sort(),
  );
  expect(Object.keys(paths).sort()).toEqual(Object.keys(pathsRequest.properties).sort());
  for (const start of [{ start: 'a' }, { start_nodes: { keys: ['a', 'b'] } }]) {
    for (const more of [
      {},
      { max_depth: 51 },
      { max_depth: 0 },
      { max_results: 10_001 },
      { direction: 'up' },
      { to: 1 },
    ]) {
      const body = { ...traverse, ...start, ...more };
      expect([more, Value.Check(traverseRequest, body)]).toEqual([more, isTaken(() => readTraverse(body))]);
    }
  }
  for (const more of [{}, { k: 0 }, { k: 101 }, { source: undefined }, { weight_mode: 'any' }, { fields: ['a'] }]) {
    const body = { ...paths, ...more };
    expect([more, Value.Check(pathsRequest, body)]).toEqual([more, isTaken(() => readPaths(body))]);
  }
});

test('durations are documented as they are read', () => {
  for (const text of ['30s', '1h30m', '250ms', '7d', '0s', '', '5', 'm', '1.5h', '-1s', '1h 30m', '1w']) {
    expect([text, new RegExp(durationPattern).test(text)]).toEqual([text, isTaken(() => parseDuration(text))]);
  }
});
