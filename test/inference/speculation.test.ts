import { describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GenerateInput, Speculation } from '../../src/model-host/operations/generate.ts';
import { describeModel } from '../../src/models/installed-model.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const chain = fixtureModel('generators', 'chain');
const lookup: Speculation = { policy: 'auto', draft: undefined, tokens: 4 };
const model: Speculation = { policy: 'force', draft: chain.model, tokens: 4 };
const pool = poolOfTests();

const say = (text: string, changes: Partial<GenerateInput> = {}) =>
  pool().run(chain, 'generate', generateInput(text, changes));

describe.each([
  ['a draft model', model],
  ['the text itself', lookup],
])('what is drafted by %s', (_name, speculation) => {
  test('does not change the output', async () => {
    const grammar = { grammar: 'root ::= (" on" | " and" | " the")+', after: undefined };
    const variants: (readonly [string, Partial<GenerateInput>])[] = [
      ['count', {}],
      ['hello', {}],
      ['forever', { tokensMax: 41 }],
      ['forever', { tokensMax: 1 }],
      ['forever', { tokensMax: 100, stop: ['on and on and on and on'] }],
      ['forever', { tokensMax: 23, constraint: grammar }],
      ['forever', { tokensMax: 23, topLogprobs: 2 }],
      ['forever', { tokensMax: 30, sampling: { ...generateInput('').sampling, temperature: 6, topK: 5, seed: 4 } }],
      ['forever', { tokensMax: 30, sampling: { ...generateInput('').sampling, frequencyPenalty: 2 } }],
      ['one two three one two three one two three count', {}],
      ['forever', { tokensMax: 5_000 }],
    ];
    for (const [text, changes] of variants) {
      const { prefillMs: _, decodeMs: __, speculation: none, ...plain } = await say(text, changes);
      const {
        prefillMs: ___,
        decodeMs: ____,
        speculation: report,
        ...drafted
      } = await say(text, {
        ...changes,
        speculation,
      });
      expect(drafted).toEqual(plain);
      expect(none).toBeUndefined();
      expect(report).toMatchObject({ decision: 'enabled', disabledReason: undefined });
    }
  });

  test('is counted', async () => {
    const { speculation: report, completionTokens } = await say('forever', { tokensMax: 60, speculation });
    expect(report?.acceptedTokens).toBeGreaterThan(30);
    expect(report?.acceptedTokens).toBeLessThanOrEqual(report?.draftedTokens ?? 0);
    expect(report?.acceptedTokens).toBeLessThan(completionTokens);
  });

  test('does not mix with what others are told', async () => {
    const words = ['forever', 'count', 'forever', 'hello', 'forever', 'count'];
    const inputs = words.map((word) => ({ tokensMax: 30, promptCache: { key: word } }));
    const plain = await Promise.all(words.map((word, at) => say(word, inputs[at])));
    const drafted = await Promise.all(words.map((word, at) => say(word, { ...inputs[at], speculation })));
    expect(drafted.map(({ text }) => text)).toEqual(plain.map(({ text }) => text));
  });
});

test('drafts that do not come true are made more rarely', async () => {
  const sampling = { ...generateInput('').sampling, temperature: 1_000, seed: 1 };
  const { speculation } = await say('forever', { tokensMax: 200, ignoreEos: true, sampling, speculation: model });
  expect(speculation?.acceptedTokens).toBeLessThan(20);
  expect(speculation?.draftedTokens).toBeLessThan(500);
});

test('a model with another vocabulary cannot draft: the request goes on without, or is refused when it insists', async () => {
  using directory = new TemporaryDirectory();
  const file = join(directory.path, 'model.gguf');
  cpSync(join(chain.model?.directory ?? '', 'model.gguf'), file);
  const bytes = readFileSync(file);
  bytes.write('sevem', bytes.indexOf('seven'), 'latin1');
  writeFileSync(file, bytes);
  const draft = describeModel('generators', 'other-words', directory.path);
  const { text, speculation } = await say('count', { speculation: { policy: 'auto', draft, tokens: 4 } });
  expect(text).toBe(' one two three four five six seven eight nine ten');
  expect(speculation).toEqual({
    decision: 'disabled',
    disabledReason: 'their vocabularies differ',
    draftedTokens: 0,
    acceptedTokens: 0,
  });
  const refusal = await say('count', { speculation: { policy: 'force', draft, tokens: 4 } }).catch((error) => error);
  expect(refusal).toMatchObject({ code: 'model_not_supported', message: expect.stringContaining('vocabularies') });
});
