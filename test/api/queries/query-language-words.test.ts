import { describe, expect, test } from 'bun:test';
import { matchDocuments } from '../../../src/engine/native-query.ts';
import { framesOf } from '../../../src/query/document-frames.ts';
import { planFilter, planQuery } from '../../../src/query/plan/query-plan.ts';
import { openSchema } from '../../../src/tables/schema/document-schema.ts';

/** Words by their shape, places and named filters: planned here, evaluated by the native engine. */
const documents: Record<string, unknown> = {
  leek: { title: 'Leek and potato soup', year: 2019, ip: '10.1.2.3', kitchen: { lat: 46.948, lon: 7.447 } },
  miso: { title: 'Miso soup with tofu', year: 2021, ip: '192.168.0.7', kitchen: { lat: 47.376, lon: 8.541 } },
  stew: { title: 'Butternut squash stew', code: 'AB*12', year: 2020, vegan: true },
  neko: { title: '黒い猫のスープ', code: 'AB-12', kitchen: { lat: 35.68, lon: 139.76 } },
};

const rows = Object.entries(documents).map(([key, body]) => ({
  key,
  body: new TextEncoder().encode(JSON.stringify(body)),
  ttlBaseMs: undefined,
  writtenMs: undefined,
}));

async function matches(request: Record<string, unknown>): Promise<string[]> {
  return matching(planQuery(request, { name: 'recipes', nowMs: 0 }).plan);
}

async function matching(plan: unknown): Promise<string[]> {
  const found: number[] = [];
  for (const frame of framesOf(rows)) found.push(...(await matchDocuments(openSchema, JSON.stringify(plan), frame)));
  return rows.filter((_, index) => found[index] === 1).map((row) => row.key);
}

const strings: [query: string, keys: string[]][] = [
  ['s?up', ['leek', 'miso']],
  ['*utt*', ['stew']],
  ['title:*tat*', ['leek']],
  ['code:AB\\*1?', ['stew']],
  ['code:AB?12', ['stew', 'neko']],
  ['soop~', ['leek', 'miso']],
  ['soop~0', []],
  ['title:sxxp~2', ['leek', 'miso']],
  ['~buternut', ['stew']],
  ['title:~buternut', ['stew']],
  ['title:/(miso|leek)/', ['leek', 'miso']],
  ['title:/mis/', []],
  ['potatoe~1 AND soup~1', ['leek']],
  ['title:/s.*/ NOT tof*', ['leek', 'stew']],
  ['猫', ['neko']],
  ['スープ', ['neko']],
  ['title:/[/', []],
  ['_all:soup', ['leek', 'miso']],
  ['_all:(soup tofu) OR _all:squ*', ['miso', 'stew']],
  ['_all:/t.f./', ['miso']],
];

const nodes: [node: unknown, keys: string[]][] = [
  [{ match: 'butternot squish', fuzziness: 'auto', operator: 'and' }, ['stew']],
  [{ match: 'butternot', fuzziness: 1, prefix_length: 7 }, ['stew']],
  [{ match: 'butternot', fuzziness: 1, prefix_length: 8 }, []],
  [{ match_phrase: 'mizo soop', fuzziness: 1 }, ['miso']],
  [{ term: 'sopu', fuzziness: 1, field: 'title' }, ['leek', 'miso']],
  [{ fuzzy: { title: 'buttrnut' } }, ['stew']],
  [{ terms: ['miso', 'soup'], field: 'title' }, ['miso']],
  [{ terms: [['miso', 'potato'], ['soup']], field: 'title' }, ['leek', 'miso']],
  [{ wildcard: { code: 'AB-*' } }, ['neko']],
  [{ match: 'soup', field: '_all' }, ['leek', 'miso']],
  [{ match_phrase: { _all: 'squash stew' } }, ['stew']],
  [{ multi_match: { query: 'mis', type: 'bool_prefix', fields: ['_all'] } }, ['miso']],
  [{ regexp: '[lm]e.*', field: 'title' }, ['leek']],
  [{ cidr: '10.0.0.0/8', field: 'ip' }, ['leek']],
  [{ top_left: [7, 48], bottom_right: [8, 46], field: 'kitchen' }, ['leek']],
  [{ location: [7.447, 46.948], distance: '100km', field: 'kitchen' }, ['leek', 'miso']],
  [{ geo_distance: { distance: '5 mi', kitchen: { lat: 35.7, lon: 139.76 } } }, ['neko']],
  [{ polygon_points: ['48,8', '48,9', '47,9', '47,8'], field: 'kitchen' }, ['miso']],
  [
    {
      geometry: {
        shape: {
          type: 'envelope',
          coordinates: [
            [0, 50],
            [10, 40],
          ],
        },
        relation: 'within',
      },
      field: 'kitchen',
    },
    ['leek', 'miso'],
  ],
];

describe('words by their shape', () => {
  for (const [query, keys] of strings) {
    test(`${query} finds ${keys.join(', ') || 'nothing'}`, async () => {
      const finding = matches({ full_text_search: { query } });
      if (query.includes('[/')) await expect(finding).rejects.toMatchObject({ code: 'invalid_query' });
      else expect(await finding).toEqual(keys);
    });
  }

  for (const [node, keys] of nodes) {
    test(`${JSON.stringify(node)} finds ${keys.join(', ') || 'nothing'}`, async () => {
      expect(await matches({ full_text_search: node })).toEqual(keys);
      expect(await matches({ filter_query: node })).toEqual(keys);
      expect(await matching(planFilter(node, { nowMs: 0 }))).toEqual(keys);
    });
  }

  test('named filters', async () => {
    const named = { new: { min: 2020, field: 'year' }, 'new soup': [{ ref: 'new' }, { query: 'soup' }] };
    expect(await matches({ with: named, filter_query: { ref: 'new' } })).toEqual(['miso', 'stew']);
    expect(await matches({ with: named, full_text_search: { ref: 'new soup' } })).toEqual(['miso']);
    expect(
      await matches({ with: named, full_text_search: { query: 'soup' }, exclusion_query: { ref: 'new' } }),
    ).toEqual(['leek']);
  });

  test('what is too large or wrong is refused with its code', async () => {
    for (const [node, code] of [
      [{ regexp: '((a{1000}){1000}){1000}', field: 'title' }, 'limit_exceeded'],
      [{ regexp: '(', field: 'title' }, 'invalid_query'],
      [{ cidr: '10.0.0.0/99', field: 'ip' }, 'invalid_query'],
      [{ geometry: { shape: { type: 'Cube' } }, field: 'kitchen' }, 'invalid_query'],
    ] as const) {
      await expect(matches({ full_text_search: node })).rejects.toMatchObject({ code });
    }
  });
});
