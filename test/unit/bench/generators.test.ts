import { describe, expect, test } from 'bun:test';
import { batchBody } from '../../../bench/workloads/batch-bodies.ts';
import { queryClasses, queryString, textQueries } from '../../../bench/workloads/text-queries.ts';
import { Xorshift32 } from '../../../bench/workloads/xorshift32.ts';
import { type ZipfDocument, zipfBody, zipfDocuments } from '../../../bench/workloads/zipf-documents.ts';
import { ZipfVocabulary, zipfWord } from '../../../bench/workloads/zipf-vocabulary.ts';

function firstDocuments(count: number, seed?: number): ZipfDocument[] {
  return zipfDocuments(seed).take(count).toArray();
}

describe('xorshift32', () => {
  test('is the published sequence', () => {
    const random = new Xorshift32(2_463_534_242); // the seed and the first output of Marsaglia's paper, section 4
    expect(random.next()).toBe(723_471_715);
  });

  test('refuses the seed that would only give zeros', () => {
    expect(() => new Xorshift32(0)).toThrow('must not be 0');
  });

  test('keeps unit() in [0, 1)', () => {
    const random = new Xorshift32(42);
    for (let draw = 0; draw < 10_000; draw += 1) {
      const value = random.unit();
      expect(value >= 0 && value < 1).toBe(true);
    }
  });
});

describe('the Zipf vocabulary', () => {
  test('has 50,000 different words of small letters', () => {
    const { words } = new ZipfVocabulary();
    expect(new Set(words).size).toBe(50_000);
    expect(words.every((word) => /^[a-z]{4,6}$/.test(word))).toBe(true);
  });

  test('draws rank r with p ~ 1 / (r + 2.7)^1.07', () => {
    const vocabulary = new ZipfVocabulary();
    const random = new Xorshift32(42);
    const draws = 200_000;
    const counts = new Map<number, number>();
    for (let draw = 0; draw < draws; draw += 1) {
      const rank = vocabulary.rank(random);
      counts.set(rank, (counts.get(rank) ?? 0) + 1);
    }
    let sum = 0;
    for (let rank = 0; rank < 50_000; rank += 1) sum += (rank + 2.7) ** -1.07;
    for (const rank of [0, 1, 10, 100]) {
      const expected = ((rank + 2.7) ** -1.07 / sum) * draws;
      expect(Math.abs((counts.get(rank) ?? 0) - expected)).toBeLessThan(5 * Math.sqrt(expected));
    }
  });
});

describe('generated documents', () => {
  test('are the same for the same seed and different for another', () => {
    expect(firstDocuments(20)).toEqual(firstDocuments(20));
    expect(firstDocuments(1, 43)).not.toEqual(firstDocuments(1, 42));
  });

  test('stay as they are: results of different days must be of the same data', () => {
    const bodies = firstDocuments(1_000).map(zipfBody).join('\n');
    expect(Bun.hash.crc32(bodies)).toBe(3_174_895_203);
  });

  test('have bodies of 40 to 119 words, about 80 in the mean', () => {
    const lengths = firstDocuments(2_000).map(({ body }) => body.split(' ').length);
    expect(Math.min(...lengths)).toBeGreaterThanOrEqual(40);
    expect(Math.max(...lengths)).toBeLessThan(120);
    expect(lengths.reduce((sum, length) => sum + length, 0) / lengths.length).toBeCloseTo(80, -0.5);
  });

  test('are JSON that says the same', () => {
    const [document] = firstDocuments(1);
    if (!document) throw new Error('no document');
    const { key, ...members } = document;
    expect(key).toBe('doc:000000000');
    expect(JSON.parse(zipfBody(document))).toEqual(members);
  });

  test('become batch bodies with the key as member name', () => {
    const lines = ['{"title":"x"}', '{"title":"y, \\"z\\""}'];
    expect(JSON.parse(batchBody(lines, 7, 'full_text'))).toEqual({
      inserts: { 'doc:000000007': { title: 'x' }, 'doc:000000008': { title: 'y, "z"' } },
      sync_level: 'full_text',
    });
    expect(JSON.parse(batchBody(lines, 0, undefined))).not.toHaveProperty('sync_level');
  });
});

describe('generated queries', () => {
  test('come in equal numbers of every class, the same for the same seed', () => {
    const queries = textQueries(500, 10, 42);
    for (const name of queryClasses) expect(queries.filter((query) => query.class === name)).toHaveLength(10);
    expect(textQueries(500, 10, 42)).toEqual(queries);
  });

  test('of one document find that document: AND and phrase always have a hit', () => {
    const bodies = firstDocuments(500).map(({ body }) => ` ${body} `);
    for (const { class: name, words } of textQueries(500, 10, 42)) {
      if (name === 'and') expect(bodies.some((body) => words.every((word) => body.includes(` ${word} `)))).toBe(true);
      if (name === 'phrase') expect(bodies.some((body) => body.includes(` ${words.join(' ')} `))).toBe(true);
    }
  });

  test('are written in the grammar of the query string', () => {
    const query = (kind: 'and' | 'or' | 'phrase' | 'prefix', words: string[]) =>
      queryString({ class: 'and', kind, field: 'body', words });
    expect(query('and', ['a', 'b'])).toBe('body:a AND body:b');
    expect(query('or', ['a', 'b'])).toBe('body:a OR body:b');
    expect(query('phrase', ['a', 'b'])).toBe('body:"a b"');
    expect(query('prefix', ['ab'])).toBe('body:ab*');
  });

  test('use the words of their ranks', () => {
    expect([0, 1, 9_899, 9_900].map(zipfWord)).toEqual(['beba', 'bebe', 'zuzu', 'bebaba']);
  });
});
