import { expect, test } from 'bun:test';
import type { StoredDocument } from '../../../src/storage/reader/document-store.ts';
import { ScanFilter } from '../../../src/tables/reads/scan-filter.ts';

function document(ordinal: number, sequence: number): StoredDocument {
  return { key: `k${ordinal}`, ordinal, sequence, ttlBaseMs: undefined, writtenMs: undefined, body: new Uint8Array() };
}

/** Bits of 1, 9 and 10. */
const ordinals = Uint8Array.of(0b10, 0b110);

test('what the index shows is looked up, what is newer is matched by its body', async () => {
  const asked: number[][] = [];
  let questions = 0;
  const filter = new ScanFilter({
    sequenceOf: ({ sequence }) => sequence,
    indexed: async () => {
      questions += 1;
      return { throughSequence: 100, ordinals };
    },
    stored: async (documents) => {
      asked.push(documents.map(({ ordinal }) => ordinal));
      return documents.map(({ ordinal }) => ordinal === 2);
    },
  });
  const page = [
    document(1, 5),
    document(2, 101),
    document(3, 100),
    document(9, 101),
    document(10, 7),
    document(500, 8),
  ];
  await filter.ready();
  expect(await filter.matches(page)).toEqual([true, true, false, false, true, false]);
  await filter.ready();
  expect(await filter.matches([document(9, 6)])).toEqual([true]);
  expect([asked, questions]).toEqual([[[2, 9]], 1]);
});

test('an index that cannot be asked yet is asked again with the next page', async () => {
  let isOpen = false;
  const filter = new ScanFilter({
    sequenceOf: ({ sequence }) => sequence,
    indexed: async () => (isOpen ? { throughSequence: 100, ordinals } : undefined),
    stored: async (documents) => documents.map(() => false),
  });
  await filter.ready();
  expect(await filter.matches([document(1, 5)])).toEqual([false]);
  isOpen = true;
  await filter.ready();
  expect(await filter.matches([document(1, 5)])).toEqual([true]);
});

test('rows that were read before the index was asked are matched by their bodies: it may show what they became since', async () => {
  const filter = new ScanFilter({
    sequenceOf: ({ sequence }) => sequence,
    indexed: async () => ({ throughSequence: 100, ordinals }),
    stored: async (documents) => documents.map(() => false),
  });
  expect(await filter.matches([document(1, 5)])).toEqual([false]);
});
