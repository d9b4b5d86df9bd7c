import { describe, expect, test } from 'bun:test';
import { foundIn } from '../../../src/enrichment/edges/extraction.ts';

const source = { kind: 'artifact', artifact: 'found', path: '$', format: 'extraction_relation' } as const;

describe('the relations of an extraction', () => {
  test('find their entities by id, of several with one id the first', () => {
    const entities = [{ id: 1, text: 'first' }, { id: 1, text: 'second' }, 'no object', { id: 'a', text: 'other' }];
    const relations = [{ type: 'knows', source: { id: 1 }, target: { id: 'a' } }];
    expect([...foundIn({ entities, relations }, source)]).toEqual([
      { type: 'knows', source: entities[0], target: entities[3] },
    ]);
    const strange = [{ type: 'knows', source: { id: '1' }, target: { id: 'a' } }];
    expect(() => [...foundIn({ entities, relations: strange }, source)]).toThrow('none of its entities');
  });

  test('look at each entity once, however many relations there are', () => {
    const count = 1_000;
    let looks = 0;
    const entities = Array.from({ length: count }, (_, number) => ({
      get id() {
        looks += 1;
        return number;
      },
    }));
    const relations = entities.map((_, id) => ({ type: 'knows', source: { id }, target: { id: count - 1 - id } }));
    expect([...foundIn({ entities, relations }, source)]).toHaveLength(count);
    expect(looks).toBe(count);
  });
});
