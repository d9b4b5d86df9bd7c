import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { compileProjection } from '../../../src/query/request/projection/projection.ts';
import { threadMs } from '../../support/thread-time.ts';

const document = `{"title":"Leek soup","n":1.0,"big":1e2,"author":{"name":"Ada","email":"a@b","tags":["x","y"]},
  "steps":[{"text":"chop","minutes":5},{"text":"boil","minutes":-0},"serve"],"a.b":{"c":1,"d":2},
  "_chunks":{"i":[{"_id":1,"_embedding":[1]}]},"_embeddings":{"v":[1]},"_timestamp":"2024-01-01T00:00:00Z"}`;

function apply(fields: string[], text = document): string {
  return compileProjection(fields).apply(text);
}

const cases: [fields: string[], shown: string][] = [
  [['title'], '{"title":"Leek soup"}'],
  [['title', 'n'], '{"title":"Leek soup","n":1.0}'],
  [['n', 'big', 'title'], '{"title":"Leek soup","n":1.0,"big":1e2}'],
  [['author.name'], '{"author":{"name":"Ada"}}'],
  [['author'], '{"author":{"name":"Ada","email":"a@b","tags":["x","y"]}}'],
  [['author', 'author.name'], '{"author":{"name":"Ada","email":"a@b","tags":["x","y"]}}'],
  [['author.*'], '{"author":{"name":"Ada","email":"a@b","tags":["x","y"]}}'],
  [['*.name'], '{"author":{"name":"Ada"}}'],
  [['author', '-author.email'], '{"author":{"name":"Ada","tags":["x","y"]}}'],
  [['author.tags'], '{"author":{"tags":["x","y"]}}'],
  [['author.name', '-author'], '{}'],
  [['title', '-title'], '{}'],
  [['title.x'], '{}'],
  [['author.missing'], '{}'],
  [['missing'], '{}'],
  [['steps.minutes'], '{"steps":[{"minutes":5},{"minutes":-0}]}'],
  [['steps', '-steps.text'], '{"steps":[{"minutes":5},{"minutes":-0},"serve"]}'],
  [['a.b.c'], '{"a.b":{"c":1}}'],
  [['a'], '{"a.b":{"c":1,"d":2}}'],
  [['a.b', '-a.b.d'], '{"a.b":{"c":1}}'],
  [['_chunks'], '{"_chunks":{"i":[{"_id":1,"_embedding":[1]}]}}'],
  [['_chunks.*', '-_chunks.*._embedding'], '{"_chunks":{"i":[{"_id":1}]}}'],
  [['_embeddings'], '{"_embeddings":{"v":[1]}}'],
];

describe('projections', () => {
  for (const [fields, shown] of cases) {
    test(`${fields.join(' ')} shows ${shown}`, () => expect(apply(fields)).toBe(shown));
  }

  test.each([
    [undefined, []],
    [['*'], []],
    [['title'], []],
    [['_embeddings'], ['taste', 'my.tags']],
    [['_embeddings.taste'], ['taste']],
    [['title', '_embeddings.my.tags'], ['my.tags']],
    [['_embeddings.*'], ['taste', 'my.tags']],
    [['_embeddings', '-_embeddings.taste'], ['my.tags']],
    [['_embeddings', '-_embeddings'], []],
    [['_embeddings.taste.values'], []],
  ])('%j shows the vectors of %j', (fields, shown) => {
    const projection = compileProjection(fields);
    expect(['taste', 'my.tags'].filter((name) => projection.showsVectors(name))).toEqual(shown);
  });

  test('with an empty list nothing of a document is shown', () => {
    expect(compileProjection([])).toMatchObject({ isWhole: false, isEmpty: true });
  });

  test('without a list a document is shown as stored', () => {
    const projection = compileProjection(undefined);
    expect(projection).toMatchObject({ isWhole: true, isEmpty: false });
    expect(projection.apply(document)).toBe(document);
    expect(compileProjection(['*']).isWhole).toBe(false);
  });

  test('* and exclusions alone show all but embeddings and chunks, unless they are named', () => {
    const names = (fields: string[]) => Object.keys(JSON.parse(apply(fields)) as object);
    const plain = ['title', 'n', 'big', 'author', 'steps', 'a.b', '_timestamp'];
    expect(names(['*'])).toEqual(plain);
    expect(names(['-title'])).toEqual(plain.slice(1));
    expect(names(['*', '-author', '_chunks'])).toEqual(['title', 'n', 'big', 'steps', 'a.b', '_chunks', '_timestamp']);
    expect(apply(['*', '_chunks.*._id'], '{"_chunks":{"i":[{"_id":1,"_embedding":[1]}]}}')).toBe(
      '{"_chunks":{"i":[{"_id":1}]}}',
    );
  });

  test('a chosen object whose members are all excluded stays, empty', () => {
    expect(apply(['a', '-a.b'], '{"a":{"b":1}}')).toBe('{"a":{}}');
    expect(apply(['a', '-a.b.c'], '{"a":{"b":[{"c":1}]}}')).toBe('{"a":{"b":[{}]}}');
    expect(apply(['a'], '{"a":{},"b":[]}')).toBe('{"a":{}}');
  });

  test('names with escapes, and names that objects treat specially, are ordinary', () => {
    expect(apply(['"é'], '{"\\"\\u00e9":1,"x":2}')).toBe('{"\\"\\u00e9":1}');
    expect(apply(['title'], '{"\\u0074itle":1,"t":2}')).toBe('{"\\u0074itle":1}');
    expect(apply(['__proto__'], '{"__proto__":{"a":1},"x":2}')).toBe('{"__proto__":{"a":1}}');
    expect(apply(['constructor'], '{"x":2}')).toBe('{}');
    expect(apply(['2', '1'], '{"2":"b","1":"a"}')).toBe('{"2":"b","1":"a"}');
  });

  for (const fields of [['a..b'], ['.a'], ['a.'], [''], ['-'], ['pre*'], ['a.b*'], ['-a*']]) {
    test(`${JSON.stringify(fields)} is refused`, () => {
      expect(() => compileProjection(fields)).toThrow(ServiceError);
    });
  }

  test('the number of paths and of their segments is bounded', () => {
    expect(() => compileProjection(Array.from({ length: 257 }, (_, index) => `f${index}`))).toThrow(/at most 256/);
    expect(() => compileProjection([Array(65).fill('a').join('.')])).toThrow(/at most 64/);
  });

  test('a large document is projected in linear time', () => {
    const large = `{"rows":[${Array(50_000).fill('{"a":"x","b":[1,2,{"c":"y"}]}').join(',')}],"title":"t"}`;
    const projection = compileProjection(['title', 'rows.b.c']);
    const attempt = () => {
      const start = threadMs();
      projection.apply(large);
      return threadMs() - start;
    };
    // The best of three: the first one compiles.
    expect(Math.min(attempt(), attempt(), attempt())).toBeLessThan(500);
  });

  test('on plain documents it agrees with choosing from the parsed value, and keeps what is chosen as written', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'é"');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<unknown>(1, 'x', true, null),
        fc.array(tie('value'), { maxLength: 2 }),
        fc.dictionary(name, tie('value'), { maxKeys: 3 }),
      ),
    }));
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((segments) => segments.join('.'));
    fc.assert(
      fc.property(
        fc.dictionary(name, value, { maxKeys: 3 }),
        fc.array(path, { minLength: 1, maxLength: 4 }),
        fc.array(path, { maxLength: 2 }),
        fc.constantFrom(undefined, 1),
        (object, included, excluded, indent) => {
          const shown = apply(
            [...included, ...excluded.map((each) => `-${each}`)],
            JSON.stringify(object, null, indent),
          );
          expect(JSON.parse(shown)).toEqual(choose(object, [], included, excluded) ?? {});
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

/** The rules, written down again without any care for speed; undefined for what is left out. */
function choose(value: unknown, at: string[], included: string[], excluded: string[]): unknown {
  const here = at.join('.');
  const covers = (path: string) => here === path || here.startsWith(`${path}.`);
  if (excluded.some(covers)) return undefined;
  const isChosen = included.some(covers);
  if (Array.isArray(value)) {
    const kept = value.map((each) => choose(each, at, included, excluded)).filter((each) => each !== undefined);
    return kept.length > 0 || isChosen ? kept : undefined;
  }
  if (typeof value !== 'object' || value === null) return isChosen ? value : undefined;
  const kept = Object.entries(value)
    .map(([name, each]) => [name, choose(each, [...at, name], included, excluded)] as const)
    .filter(([, each]) => each !== undefined);
  return kept.length > 0 || isChosen ? Object.fromEntries(kept) : undefined;
}
