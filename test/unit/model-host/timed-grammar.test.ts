import { expect, test } from 'bun:test';
import type { OutputGrammar } from '../../../src/engine/output-grammar.ts';
import { grammarBudget, TimedGrammar } from '../../../src/model-host/backends/llama/generation/timed-grammar.ts';

/** A grammar each of whose calls takes as long as it is told to. */
function slowGrammar(callMs: { now: number }): TimedGrammar {
  let nowMs = 0;
  const work = <T>(value: T) => {
    nowMs += callMs.now;
    return value;
  };
  const grammar = { accepts: () => work(true), commit: () => work(undefined), close: () => undefined };
  return new TimedGrammar(
    () => work(grammar as unknown as OutputGrammar),
    () => nowMs,
  );
}

test('a grammar may take its time at the beginning, and so much for each token', () => {
  const callMs: { now: number } = { now: grammarBudget.startMs };
  const grammar = slowGrammar(callMs);
  callMs.now = grammarBudget.tokenMs / 2;
  for (let token = 0; token < 100; token += 1) {
    grammar.commit(token);
    expect(grammar.accepts(token)).toBe(true);
  }
  expect(() => grammar.accepts(1)).toThrow(expect.objectContaining({ code: 'unsupported_response_format' }));
});

test('one that takes too long to open is refused', () => {
  expect(() => slowGrammar({ now: grammarBudget.startMs + 1 })).toThrow(
    /takes more than 20 ms of processor time a token/,
  );
});
