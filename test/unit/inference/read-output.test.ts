import { describe, expect, test } from 'bun:test';
import { TextFinder } from '../../../src/inference/extraction/find-text.ts';
import { outputSchema } from '../../../src/inference/extraction/output-schema.ts';
import { readOutput } from '../../../src/inference/extraction/read-output.ts';
import { schemaGrammar } from '../../support/grammar/schema-grammar.ts';

const schema = {
  entities: ['building', 'city'],
  relations: [{ type: 'located_in', source: 'building', target: 'city' }],
  classifications: [{ name: 'mood', labels: ['glad', 'sad'], multiLabel: false }],
  structures: [
    {
      name: 'visit',
      fields: [
        { name: 'place', list: false, choices: undefined },
        { name: 'years', list: true, choices: undefined },
        { name: 'kind', list: false, choices: ['a', 'b'] },
      ],
    },
  ],
};
const text = 'The Louvre is in Paris, and in paris I saw it in 1999 and 2004.';

describe('readOutput', () => {
  test('keeps what is whole of an output that was cut off', () => {
    const output = JSON.stringify({
      entities: [
        { label: 'building', text: 'Louvre, "{[' },
        { label: 'city', text: 'Paris' },
      ],
      relations: [{ type: 'located_in', source: 'Louvre', target: 'Paris' }],
      classifications: { mood: 'glad' },
      structures: { visit: [{ place: 'The Louvre', years: ['1999', '2004'], kind: null }] },
    });
    const counts = Array.from(output, (_, end) => {
      const found = readOutput(output.slice(0, end + 1), undefined, text, schema);
      const years = found.structures.visit?.[0]?.years;
      return [found.entities.length, found.classifications.length, Array.isArray(years) ? years.length : 0];
    });
    // One thing after the other comes to light, and nothing is lost again.
    expect([...new Set(counts.map((each) => each.join()))]).toEqual(['0,0,0', '1,0,0', '1,1,0', '1,1,1', '1,1,2']);
    expect(() => readOutput('', undefined, text, schema)).toThrow('no JSON');
  });

  test('places what was found, and leaves out what does not stand in the text', () => {
    const output = JSON.stringify({
      entities: [
        { label: 'building', text: 'louvre' },
        { label: 'city', text: 'Paris' },
        { label: 'city', text: 'London' },
        { label: 'city', text: 'Paris' },
      ],
      relations: [
        { type: 'located_in', source: 'Louvre', target: 'PARIS' },
        { type: 'located_in', source: 'Paris', target: 'Louvre' },
        { type: 'located_in', source: 'Louvre', target: 'London' },
      ],
      classifications: { mood: 'glad' },
      structures: { visit: new Array(2).fill({ place: 'The Louvre', years: ['1999', '2004', '2050'], kind: null }) },
    });
    expect(readOutput(output, undefined, text, schema)).toEqual({
      entities: [
        { label: 'building', start: 4, end: 10, score: 1 },
        { label: 'city', start: 17, end: 22, score: 1 },
      ],
      relations: [{ type: 'located_in', source: 0, target: 1, score: 1 }],
      classifications: [{ name: 'mood', label: 'glad', score: 1 }],
      structures: {
        visit: [
          {
            place: { value: 'The Louvre', start: 0, end: 10, score: 1 },
            years: [
              { value: '1999', start: 49, end: 53, score: 1 },
              { value: '2004', start: 58, end: 62, score: 1 },
              { value: '2050', score: 1 },
            ],
          },
        ],
      },
    });
  });

  test('a score is the mean chance of the tokens that spell a value', () => {
    const output = '{"entities":[{"label":"city","text":"Paris"}]}';
    const tokens = ['{"entities":[{"label":"', 'city', '","text":"', 'Par', 'is', '"}]}'];
    const logprobs = tokens.map((token) => ({
      token,
      bytes: [],
      top: [],
      logprob: token === 'Par' ? Math.log(0.9) : token === 'is' ? Math.log(0.4) : 0,
    }));
    const thought = { token: 'hmm', bytes: [], top: [], logprob: -9 };
    for (const all of [logprobs, [thought, ...logprobs]]) {
      expect(readOutput(output, all, text, schema).entities[0]?.score).toBeCloseTo(Math.sqrt(0.9 * 0.4), 6);
    }
  });
});

describe('TextFinder', () => {
  test('prefers words of their own, then what is not taken', () => {
    const finder = new TextFinder('concatenate a cat, a Cat, the cat');
    expect(finder.find('cat', 'x')).toEqual({ start: 14, end: 17 });
    expect(finder.find('cat', 'x')).toEqual({ start: 30, end: 33 });
    expect(finder.find('cat', 'y')).toEqual({ start: 14, end: 17 });
    expect(finder.find('CONCAT', 'x')).toEqual({ start: 0, end: 6 });
    expect(finder.find('dog', 'x')).toBeUndefined();
    expect(finder.find('', 'x')).toBeUndefined();
  });
});

describe('outputSchema', () => {
  test('asks for what is wanted alone, in words that can be enforced', () => {
    expect(schemaGrammar(outputSchema(schema))).toContain('root');
    const some = outputSchema({ ...schema, relations: [], classifications: [], structures: [] });
    expect(some).toMatchObject({ required: ['entities'], additionalProperties: false });
  });
});
