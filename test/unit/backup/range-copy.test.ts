import { expect, test } from 'bun:test';
import { RangeCopy } from '../../../src/backup/range-copy.ts';

type RangeCopyDeps = ConstructorParameters<typeof RangeCopy>;

/** The steps of an increment of a range whose feed has all deletions yet. */
async function stepsWhile(isPurging: boolean): Promise<string[]> {
  const steps: string[] = [];
  const writer = { all: async (name: string) => steps.push(name) };
  const write = async (_store: unknown, _name: string, _range: unknown, fill: (file: typeof writer) => unknown) => ({
    file: {},
    filled: await fill(writer),
  });
  const feed = { deletionsForgottenThrough: () => 0 };
  const range = {
    rangeId: 1,
    head: 20,
    isPurging,
    stored: { path: 'documents.db', info: () => ({ ownSince: 1 }), feed },
    pinFeed: () => ({ advance: () => {}, [Symbol.dispose]: () => {} }),
  } as unknown as RangeCopyDeps[0];
  const target = { copier: { write }, fileName: String } as unknown as RangeCopyDeps[2];
  using copy = new RangeCopy(range, { all: [], graphs: [] }, target, { baseHead: 10 });
  await copy.begin(new AbortController().signal);
  return steps;
}

test('an increment that begins while the feed forgets deletions lists what is left', async () => {
  expect(await stepsWhile(false)).toEqual(['changes']);
  expect(await stepsWhile(true)).toEqual(['live', 'changes']);
});
