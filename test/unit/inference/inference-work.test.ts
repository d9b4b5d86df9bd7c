import { describe, expect, test } from 'bun:test';
import { checkTexts, truncation, underPermit } from '../../../src/http/inference/inference-work.ts';
import { Admission } from '../../../src/inference/admission.ts';
import type { Inference } from '../../../src/inference/inference.ts';
import type { InferenceWork } from '../../../src/inference/inference-work.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function parts() {
  const recorded: InferenceWork[] = [];
  const timings: string[] = [];
  const leaving = new AbortController();
  const admission = new Admission(1);
  const clock = new FakeClock();
  const inference = { admission, clock, record: (work: InferenceWork) => recorded.push(work) } as unknown as Inference;
  const request = new Request('http://x/', { signal: leaving.signal });
  const context = { request, addTiming: (stage: string, ms: number) => timings.push(`${stage} ${ms}`) };
  return { admission, clock, context, inference, leaving, recorded, timings };
}

describe('underPermit', () => {
  test('holds a permit while it works, then times and counts', async () => {
    const { admission, clock, context, inference, recorded, timings } = parts();
    const answer = await underPermit(inference, 'embed', context, async () => {
      expect(admission.taken).toBe(1);
      await clock.advance(7);
      return { answer: { a: 1 }, items: 2, tokens: 3 };
    });
    expect([answer, admission.taken]).toEqual([{ a: 1 }, 0]);
    expect(recorded).toEqual([{ operation: 'embed', items: 2, tokens: 3, durationMs: 7 }]);
    expect(timings).toEqual(['inference 7']);
  });

  test('starts no work without one', async () => {
    const { admission, context, inference } = parts();
    using _taken = admission.take();
    let worked = false;
    const refused = underPermit(inference, 'embed', context, async () => {
      worked = true;
      return { answer: {}, items: 0, tokens: 0 };
    });
    await expect(refused).rejects.toMatchObject({ code: 'inference_capacity', retryable: true });
    expect(worked).toBe(false);
  });

  test('a failure gives the permit back and counts nothing; a client that left is no fault', async () => {
    const { admission, context, inference, leaving, recorded } = parts();
    const fail = () => underPermit(inference, 'embed', context, () => Promise.reject(new Error('broken')));
    await expect(fail()).rejects.toThrow('broken');
    leaving.abort();
    await expect(fail()).rejects.toMatchObject({ code: 'unavailable' });
    expect([admission.taken, recorded]).toEqual([0, []]);
  });
});

describe('texts of a request', () => {
  test('are bounded in number and length', () => {
    expect(() => checkTexts(new Array(2_048).fill('a'))).not.toThrow();
    expect(() => checkTexts(new Array(2_049).fill('a'))).toThrow('2049 texts; it may have 2048');
    expect(() => checkTexts([{ length: 1_048_577 }])).toThrow('it may have 1048576');
  });

  test('are cut where they are to be cut', () => {
    expect([true, false, undefined, 'start', 'end'].map((word) => truncation(word as boolean))).toEqual([
      'end',
      undefined,
      undefined,
      'start' as never,
      'end',
    ]);
  });
});
