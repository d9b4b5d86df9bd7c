import { describe, expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import { Admission, type Finished, type InferenceCall, type InferenceWork } from '../../../src/inference/admission.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const full = { code: 'inference_capacity', retryable: true, retryAfterMs: expect.any(Number) };
const { signal } = new AbortController();

function callOf(signal: AbortSignal, more: Partial<InferenceCall> = {}): InferenceCall {
  return { caller: serverCaller('test', signal), signal, ...more };
}

function openAdmission(concurrentMax: number) {
  const clock = new FakeClock();
  const finished: InferenceWork[] = [];
  let refused = 0;
  const admission = new Admission({
    clock,
    concurrentMax,
    onRefused: () => {
      refused += 1;
    },
    onFinished: (work) => finished.push(work),
  });
  return { admission, clock, finished, refusals: () => refused };
}

const answered = async (value: number): Promise<Finished<number>> => ({ value, items: 2, tokens: 3 });
const waiting = () => Promise.withResolvers<Finished<number>>();

test('work with models is refused to callers without a grant for it, before any work', async () => {
  const { admission, finished } = openAdmission(1);
  const principal = { kind: 'granted', name: 'reader', madeMs: 1, grants: [] } as const;
  const call = callOf(signal, { caller: { ...serverCaller('test', signal), principal } });
  await expect(admission.run('embed', call, () => answered(1))).rejects.toMatchObject({ code: 'forbidden' });
  expect([admission.taken, finished]).toEqual([0, []]);
});

describe('a permit', () => {
  test('is held for the length of the work, and counted when the work is finished', async () => {
    const { admission, clock, finished } = openAdmission(1);
    const answer = admission.run('embed', callOf(signal), async () => {
      expect(admission.taken).toBe(1);
      await clock.advance(7);
      return answered(5);
    });
    expect([await answer, admission.taken]).toEqual([5, 0]);
    expect(finished).toEqual([{ operation: 'embed', items: 2, tokens: 3, durationMs: 7 }]);
  });

  test('is refused where none is left, before any work, and given again when one comes back', async () => {
    const { admission, refusals } = openAdmission(1);
    const first = waiting();
    const working = admission.run('embed', callOf(signal), () => first.promise);
    let worked = false;
    const other = () =>
      admission.run('rerank', callOf(signal), () => {
        worked = true;
        return answered(1);
      });
    await expect(other()).rejects.toMatchObject(full);
    expect([worked, refusals()]).toEqual([false, 1]);
    first.resolve({ value: 7, items: 0, tokens: 0 });
    expect([await working, await other()]).toEqual([7, 1]);
  });

  test('comes back when the work fails, which is not counted', async () => {
    const { admission, finished } = openAdmission(1);
    await expect(admission.run('embed', callOf(signal), () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect([admission.taken, finished]).toEqual([0, []]);
  });

  test('is not needed in the background, and never refused without a bound', async () => {
    const { admission } = openAdmission(1);
    const first = waiting();
    const working = admission.run('embed', callOf(signal), () => first.promise);
    const priority = 'background';
    expect(await admission.run('embed', callOf(signal, { priority }), () => answered(2))).toBe(2);
    first.resolve(await answered(1));
    await working;
    const unbounded = openAdmission(0).admission;
    for (let each = 0; each < 1_000; each += 1) void unbounded.run('embed', callOf(signal), () => waiting().promise);
    expect(unbounded.taken).toBe(1_000);
  });
});

describe('what is thrown after an abort', () => {
  const failing = (reason?: unknown) => {
    const leaving = new AbortController();
    leaving.abort(reason);
    const { admission } = openAdmission(1);
    return admission.run('embed', callOf(leaving.signal), () => Promise.reject(new Error('broken')));
  };

  test('is no fault of ours where the client left', async () => {
    await expect(failing()).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('is the deadline or the stop that ended the work', async () => {
    await expect(failing(new ServiceError('deadline_exceeded', 'late'))).rejects.toMatchObject({
      code: 'deadline_exceeded',
    });
  });
});
