import { expect, test } from 'bun:test';
import { QueryService } from '../../../src/query/query-service.ts';

test('a fault of a query is told once all that come with it have begun, and not before', async () => {
  const begun: string[] = [];
  const tables = {
    get(name: string) {
      begun.push(name);
      throw new Error(`a fault at ${name}`);
    },
  };
  const deps = { tables, clock: { monotonicMs: () => 0, nowMs: () => 0 }, onFailure: () => undefined };
  const service = new QueryService(deps as never);
  const body = new TextEncoder().encode('{"table":"a"}{"table":"b"}{"table":"c"}');
  // A promise that fails while nobody waits for it would end the process.
  await expect(service.run(undefined, body, {} as never)).rejects.toThrow('a fault at a');
  expect(begun).toEqual(['a', 'b', 'c']);
});
