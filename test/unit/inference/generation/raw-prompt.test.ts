import { expect, test } from 'bun:test';
import { rawPrompt } from '../../../../src/inference/generation/prompt/raw-prompt.ts';

const info = { bosText: '<s>', infillTexts: { prefix: '<PRE>', suffix: '<SUF>', middle: '<MID>' } };

test('a text is plain, behind the token that begins one; tokens may have it already', () => {
  expect(rawPrompt({ input: 'a<s>', suffix: undefined }, info).pieces).toEqual([
    { text: '<s>', markup: true },
    { text: 'a<s>', markup: false },
  ]);
  expect(rawPrompt({ input: [4, 2], suffix: '' }, info).pieces).toEqual([{ tokens: [4, 2] }]);
});

test('a gap stands behind what surrounds it', () => {
  const { pieces } = rawPrompt({ input: 'def f(', suffix: '): <MID>' }, info);
  expect(pieces).toEqual([
    { text: '<s>', markup: true },
    { text: '<PRE>', markup: true },
    { text: 'def f(', markup: false },
    { text: '<SUF>', markup: true },
    { text: '): <MID>', markup: false },
    { text: '<MID>', markup: true },
  ]);
  expect(() => rawPrompt({ input: 'a', suffix: 'b' }, { bosText: '<s>' })).toThrow(/^suffix: this model/);
});
