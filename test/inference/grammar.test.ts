import { describe, expect, test } from 'bun:test';
import { systemClock } from '../../src/lib/clock.ts';
import type { GenerateInput } from '../../src/model-host/operations/generate.ts';
import { SeededRandom } from '../support/fault/seeded-random.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';

const chain = fixtureModel('generators', 'chain');
const pool = poolOfTests();

const say = (text: string, grammar: string, changes: Partial<GenerateInput> & { after?: string } = {}) =>
  pool().run(chain, 'generate', generateInput(text, { constraint: { grammar, after: changes.after }, ...changes }));

describe('a grammar', () => {
  test('leads the output, and ends it when it is complete', async () => {
    expect(await say('count', 'root ::= " one" " two" "!"')).toMatchObject({ text: ' one two!', finish: 'stop' });
    expect(await say('count', 'root ::= (" one" | " two" | " six")+ "."', { tokensMax: 3 })).toMatchObject({
      finish: 'length',
    });
    expect(await say('nothing', 'root ::= "yes" | "no"')).toMatchObject({ text: expect.stringMatching(/^(yes|no)$/) });
  });

  test('ends the output also where the end is to be ignored', async () => {
    const result = await say('hello', 'root ::= " from" " the"', { ignoreEos: true });
    expect(result).toMatchObject({ text: ' from the', finish: 'stop' });
  });

  test('holds beside sampling, penalties and log probabilities', async () => {
    const sampling = { ...generateInput('').sampling, temperature: 20, seed: 3, frequencyPenalty: 0.5 };
    const { text, logprobs } = await say('count', 'root ::= [a-f]{12}', { sampling, topLogprobs: 2 });
    expect(text).toMatch(/^[a-f]{12}$/);
    expect(logprobs?.map(({ token }) => token).join('')).toBe(text);
  });

  test('sets in behind a text, wherever that ends in a token', async () => {
    const call = '<tool_call>{"name":"add","arguments":{"a":1,"b":2}}</tool_call>';
    expect((await say('call', 'root ::= "{\\"name\\":\\"sub\\"}"', { after: '<tool_call>' })).text).toBe(
      '<tool_call>{"name":"sub"}',
    );
    // The token `{"name":"add","arguments":` goes on behind the text: it is held to the grammar already.
    const within = await say('call', 'root ::= "\\"add\\",\\"arguments\\":" "[]"', { after: '{"name":' });
    expect(within.text).toBe('<tool_call>{"name":"add","arguments":[]');
    expect((await say('call', 'root ::= "x"', { after: 'never said' })).text).toBe(call);
  });
});

describe('a grammar that cannot be used is refused with the reason', () => {
  const wide = (count: number) =>
    `root ::= a0\n${Array.from({ length: count }, (_, at) => `a${at} ::= a${at + 1}`).join('\n')}\na${count} ::= "x"`;
  test.each([
    ['root ::= "a" b', 'uses the rule "b"'],
    ['a ::= "x"', 'no rule "root"'],
    ['root ::= "a', 'text is not closed at line 1, column 10'],
    ['root ::= ("a"', 'parenthesis is not closed'],
    ['root ::= "a")', 'closed that is not open'],
    ['root ::= [a-z', 'class of characters is not closed'],
    ['root ::= "\\q"', 'unknown escape'],
    ['root ::= "a"{5,2}', 'ends before it begins'],
    ['root ::= "a"{99999999999999999999}', 'longer than 2000'],
    ['root ::= "a"{x}', 'repetition is not'],
    ['root ::= <[5]>', "unexpected '<'"],
    ['root ::= "\0"', 'not closed'],
    [`root ::= ${'('.repeat(100_000)}"a"${')'.repeat(100_000)}`, 'more than 200 parentheses'],
    [wide(9_000), '5000 are allowed'],
    [`root ::= "${'a'.repeat(300_000)}"`, '262144 are allowed'],
    ['root ::= *', 'nothing to repeat'],
    ['', 'no rule "root"'],
  ])('%#', async (grammar, reason) => {
    const error = await say('hello', grammar).catch((failure: unknown) => failure);
    expect(error).toMatchObject({ code: 'unsupported_response_format', message: expect.stringContaining(reason) });
  });

  test('and one within the bounds is followed, however deep and long its chains', async () => {
    const deep = `root ::= ${'('.repeat(190)}"a"${')'.repeat(190)}`;
    const leftRecursive = 'root ::= root "a" | "a"';
    for (const grammar of [deep, wide(4_900).replace('"x"', '"a"'), 'root ::= "a"{1,2000}', leftRecursive]) {
      expect((await say('nothing', grammar, { tokensMax: 3 })).text).toStartWith('a');
    }
  });
});

describe('an ambiguous grammar holds up nobody', () => {
  const names = Array.from({ length: 40 }, (_, at) => `r${at}`);
  const alike = `root ::= ${names.map((name) => `${name}?`).join(' ')}\n${names.map((name) => `${name} ::= [a-z ]`).join('\n')}`;
  test.each([
    ['rules alike', alike],
    ['letters that may or may not be there', `root ::= ${'[a-z ]?'.repeat(40)}`],
    ['repetitions within repetitions', 'root ::= a{0,200}\na ::= b{0,200}\nb ::= [a-z ]'],
    ['ways alike without end', 'root ::= x*\nx ::= [a-z ] | [a-y ] | [a-x ]'],
  ])('%s', async (_name, grammar) => {
    const start = systemClock.monotonicMs();
    const ambiguous = say('count', grammar, { tokensMax: 24 }).then(
      ({ text }) => text,
      (error: { code: string }) => error.code,
    );
    const others = await Promise.all(['count', 'hello'].map((text) => say(text, 'root ::= [^x]*', { tokensMax: 8 })));
    expect(others.map(({ completionTokens }) => completionTokens > 0)).toEqual([true, true]);
    expect(await ambiguous).toMatch(/^([a-z ]*|unsupported_response_format)$/);
    expect(systemClock.monotonicMs() - start).toBeLessThan(20_000);
  });
});

test('an output whose client has left gives its sequence away within a token, also while it follows a grammar', async () => {
  const single = fixtureModel('generators', 'chain', { parallelSequences: 1, contextTokensMax: 4_096 });
  const constraint = { grammar: 'root ::= x*\nx ::= [a-z ] | [a-y ] | [a-x ]', after: undefined };
  const input = generateInput('forever', { constraint, tokensMax: 3_000 });
  // The machine may be busy with something else: the least of some times is its own.
  const leastMs = async (work: () => Promise<unknown>) => {
    const tookMs: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const startMs = systemClock.monotonicMs();
      await work();
      tookMs.push(systemClock.monotonicMs() - startMs);
    }
    return Math.min(...tookMs);
  };
  const wholeMs = await leastMs(() => pool().run(single, 'generate', input));
  const leftMs = await leastMs(async () => {
    const control = new AbortController();
    const started = Promise.withResolvers<void>();
    const running = pool().run(
      single,
      'generate',
      { ...input, stream: true },
      { signal: control.signal, onEvent: () => started.resolve() },
    );
    await started.promise;
    control.abort(new Error('gone'));
    expect(await running.catch(String)).toBe('Error: gone');
    // There is one sequence: this has to wait until it is free.
    expect(await pool().run(single, 'generate', generateInput('hello'))).toMatchObject({ text: ' from the chain.' });
  });
  expect(leftMs).toBeLessThan(wholeMs / 20);
});

test('no grammar ends the process', async () => {
  const seed = 20_261_121;
  const random = new SeededRandom(seed);
  const pieces = [
    'root',
    ' ::= ',
    'a',
    '"b"',
    '[c-',
    ']',
    '[^x]',
    '(',
    ')',
    '*',
    '+',
    '?',
    '{2}',
    '{1,3}',
    '{,2}',
    '|',
  ];
  pieces.push('\n', ' ', '#', '"', '\\', '\\x41', '.', '-', '0', '\u{1f33b}', 'root ::= "a" a\na ::= "b" | ', '<');
  for (let turn = 0; turn < 400; turn += 1) {
    const length = 1 + Math.floor(random.next() * 12);
    const tail = Array.from({ length }, () => pieces[Math.floor(random.next() * pieces.length)]).join('');
    const outcome = await say('hello', turn % 2 === 0 ? `root ::= ${tail}` : tail, { tokensMax: 4 }).then(
      () => 'followed',
      (error: { code?: string }) => error.code,
    );
    expect(['followed', 'unsupported_response_format'], `seed ${seed}, turn ${turn}: ${tail}`).toContain(outcome ?? '');
  }
});
