import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { HostSpec } from '../../src/model-host/model-spec.ts';
import type { InputOf, OperationName, ResultOf } from '../../src/model-host/operations.ts';
import { openTestPool, type TestPool } from '../support/inference/inference-pool.ts';

/** A model, or a reader of files, that is loaded into a child process, and what it is asked. */
export interface BackendUnderTest<Name extends OperationName> {
  readonly spec: HostSpec;
  readonly operation: Name;
  readonly input: InputOf<Name>;
  /** One with another answer. */
  readonly other: InputOf<Name>;
  /** The part of a result that depends on the input alone. */
  readonly answer: (result: ResultOf<Name>) => unknown;
}

/** The promises of every backend, whatever it runs. */
export function modelBackendContract<Name extends OperationName>(label: string, backend: BackendUnderTest<Name>): void {
  const { spec, operation, input, other, answer } = backend;

  describe(`${label}, ${operation}`, () => {
    let host: TestPool;
    let alone: unknown;

    const run = async (given: InputOf<Name>, signal?: AbortSignal) => {
      const result = await host.pool.run(spec, operation, given, signal === undefined ? {} : { signal });
      return rounded(answer(result));
    };

    beforeAll(async () => {
      host = openTestPool();
      alone = await run(input);
    });
    afterAll(async () => await host[Symbol.asyncDispose]());

    test('answers an input alike alone and beside others', async () => {
      const otherAlone = await run(other);
      expect(otherAlone).not.toEqual(alone);
      const together = await Promise.all([input, other, input, other].map((given) => run(given)));
      expect(together).toEqual([alone, otherAlone, alone, otherAlone]);
    });

    test('ends work that nobody waits for, and works on', async () => {
      const leave = new AbortController();
      const left = Promise.all([run(input, leave.signal), run(other, leave.signal)]).catch((error: unknown) => error);
      leave.abort(new Error('the client left'));
      expect(String(await left)).toContain('the client left');
      expect(await run(input)).toEqual(alone);
      expect(host.pool.loaded().map(({ inFlight }) => inFlight)).toEqual([0]);
    });

    test('refuses by name what it cannot do', async () => {
      const absent = operation === 'predict' ? 'embed' : 'predict';
      const refused = host.pool.run(spec, absent, { features: new Float64Array(1), texts: ['a'], truncate: undefined });
      expect(await refused.catch((error: unknown) => error)).toMatchObject({
        code: 'model_not_supported',
        message: expect.stringContaining(absent),
      });
    });

    test('a killed process answers what it owed or fails it with a retryable error; the next one answers alike', async () => {
      expect(host.crashes).toEqual([]);
      const interrupted = { code: 'inference_interrupted', retryable: true };
      const outcomes = await host.pool.use(spec, async (process) => {
        const running = Array.from({ length: 16 }, () => process.run(operation, input));
        process.kill('killed by the test');
        // Otherwise the next request could be given to it before its exit is noticed.
        expect(process.alive).toBe(false);
        return await Promise.all(
          running.map((each) =>
            each.then(
              (result) => rounded(answer(result)),
              ({ code, retryable }) => ({ code, retryable }),
            ),
          ),
        );
      });
      // Messages that a child has sent before the kill are still read.
      for (const outcome of outcomes) expect([alone, interrupted]).toContainEqual(outcome);
      expect(await run(input)).toEqual(alone);
      expect(host.crashes).toEqual(['killed by the test']);
    });
  });
}

/** Numbers to four digits: sums in a batch have another order than alone. */
function rounded(value: unknown): unknown {
  if (typeof value === 'number') return Number(value.toFixed(4));
  if (ArrayBuffer.isView(value)) return Array.from(value as Float32Array, (each) => Number(each.toFixed(4)));
  if (Array.isArray(value)) return value.map(rounded);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, rounded(each)]));
}
