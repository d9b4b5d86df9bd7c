import { describe, expect, test } from 'bun:test';
import { cpSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RangeIndex } from '../../src/indexing/range-index.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/** One row of the log: a document with a text and a vector, written under an ordinal, or its deletion. */
export interface ContractRow {
  ordinal: number;
  sequence: number;
  /** Undefined for a deletion. */
  text: string | undefined;
}

/** How one kind of index is opened, fed and asked. */
export interface IndexUnderTest {
  /** Opens what lies in `directory`, or an empty index; `wipe` removes what is there. */
  open(directory: string, wipe: boolean): Promise<RangeIndex>;
  /** The rows as this kind takes them, with rows that are none of its business between them. */
  frame(rows: readonly ContractRow[]): Uint8Array<ArrayBuffer>;
  /** Ordinals that a search finds that matches every row, ascending. */
  found(index: RangeIndex): Promise<number[]>;
}

const row = (ordinal: number, sequence: number, text?: string): ContractRow => ({ ordinal, sequence, text });

/** The promises of every index of a range, whatever it holds; run by the tests of each kind. */
export function rangeIndexContract({ open, frame, found }: IndexUnderTest): void {
  /** Rows 1 to 3 in an index that is committed and durable at sequence 3, and then closed. */
  async function written(directory: string): Promise<void> {
    const index = await open(directory, false);
    await index.apply(frame([row(1, 1, 'amber'), row(2, 2, 'birch'), row(3, 3, 'cedar')]));
    await index.commit(3);
    expect(await index.checkpoint()).toMatchObject({ sequence: 3 });
    await index.close();
  }

  describe('an index of a range', () => {
    test('begins empty, at sequence 0', async () => {
      using directory = new TemporaryDirectory();
      const index = await open(join(directory.path, 'i'), false);
      expect(index.openedAtSequence).toBe(0);
      expect(await found(index)).toEqual([]);
      expect(index.stats()).toMatchObject({ appliedSequence: 0, checkpointSequence: 0, docCount: 0 });
      await index.close();
    });

    test('shows rows with their commit, not before', async () => {
      using directory = new TemporaryDirectory();
      const index = await open(join(directory.path, 'i'), false);
      const report = await index.apply(frame([row(1, 1, 'amber'), row(2, 2, 'birch')]));
      expect(report).toMatchObject({ skipped: [] });
      expect(await found(index)).toEqual([]);
      await index.commit(2);
      expect(await found(index)).toEqual([1, 2]);
      expect(index.stats()).toMatchObject({ appliedSequence: 2, docCount: 2 });
      await index.close();
    });

    test('takes the newest row of a document, and its deletion', async () => {
      using directory = new TemporaryDirectory();
      const index = await open(join(directory.path, 'i'), false);
      await index.apply(frame([row(1, 1, 'amber'), row(2, 2, 'birch'), row(1, 3, 'cedar'), row(2, 4)]));
      await index.commit(4);
      expect(await found(index)).toEqual([1]);
      await index.apply(frame([row(1, 5), row(2, 6, 'elm')]));
      await index.commit(6);
      expect(await found(index)).toEqual([2]);
      expect(index.stats().docCount).toBe(1);
      await index.close();
    });

    test('rows that come again change nothing', async () => {
      using directory = new TemporaryDirectory();
      const index = await open(join(directory.path, 'i'), false);
      const rows = [row(1, 1, 'amber'), row(2, 2, 'birch'), row(1, 3)];
      for (let round = 0; round < 2; round += 1) {
        await index.apply(frame(rows));
        await index.commit(3);
        expect(await found(index)).toEqual([2]);
        expect(index.stats()).toMatchObject({ docCount: 1, appliedSequence: 3 });
      }
      await index.close();
    });

    test('opens at its last checkpoint: what was only committed or applied is lost, and replayed', async () => {
      using directory = new TemporaryDirectory();
      const path = join(directory.path, 'i');
      await written(path);
      const index = await open(path, false);
      expect([index.openedAtSequence, await found(index)]).toEqual([3, [1, 2, 3]]);
      const newer = frame([row(4, 4, 'elm'), row(1, 5)]);
      await index.apply(newer);
      await index.commit(5);
      expect(await found(index)).toEqual([2, 3, 4]);
      // As a kill leaves it.
      const killed = join(directory.path, 'killed');
      cpSync(path, killed, { recursive: true });
      await index.close();
      const again = await open(killed, false);
      expect([again.openedAtSequence, await found(again)]).toEqual([3, [1, 2, 3]]);
      await again.apply(newer);
      await again.commit(5);
      expect(await found(again)).toEqual([2, 3, 4]);
      await again.close();
    });

    test('a commit may name a sequence beyond its own rows', async () => {
      using directory = new TemporaryDirectory();
      const path = join(directory.path, 'i');
      const index = await open(path, false);
      await index.apply(frame([row(1, 1, 'amber')]));
      await index.commit(9);
      await index.checkpoint();
      await index.close();
      const again = await open(path, false);
      expect([again.openedAtSequence, await found(again)]).toEqual([9, [1]]);
      await again.close();
    });

    test('notes what a commit leaves out as durably as the commit, until another one leaves out something else', async () => {
      using directory = new TemporaryDirectory();
      const path = join(directory.path, 'i');
      await written(path);
      const index = await open(path, false);
      const noted = async (name: string) => {
        const copy = join(directory.path, name);
        // As a kill leaves it.
        cpSync(path, copy, { recursive: true });
        const again = await open(copy, false);
        const found = [...again.leftOut()];
        await again.close();
        return found;
      };
      expect([...index.leftOut()]).toEqual([]);
      await index.apply(frame([row(2, 4), row(4, 5, 'elm')]));
      await index.commit(5, Uint32Array.of(2, 7));
      expect(await noted('committed')).toEqual([]);
      await index.checkpoint();
      expect(await noted('durable')).toEqual([2, 7]);
      await index.apply(frame([row(5, 6, 'fir')]));
      await index.commit(6);
      await index.checkpoint();
      expect(await noted('as before')).toEqual([2, 7]);
      await index.apply(frame([row(7, 7, 'gum')]));
      await index.commit(7, Uint32Array.of(2));
      await index.checkpoint();
      expect(await noted('mended')).toEqual([2]);
      await index.close();
      const wiped = await open(path, true);
      expect([...wiped.leftOut()]).toEqual([]);
      await wiped.close();
    });

    test('a wipe leaves nothing', async () => {
      using directory = new TemporaryDirectory();
      const path = join(directory.path, 'i');
      await written(path);
      const index = await open(path, true);
      expect([index.openedAtSequence, await found(index)]).toEqual([0, []]);
      await index.close();
    });

    test('damage in any of its files is found, at the latest when it is verified', async () => {
      using directory = new TemporaryDirectory();
      const path = join(directory.path, 'i');
      await written(path);
      const intact = await open(path, false);
      await intact.verify();
      await intact.close();
      const files = readdirSync(path).filter((name) => statSync(join(path, name)).size > 64);
      expect(files.length).toBeGreaterThan(0);
      for (const name of files) {
        const copy = join(directory.path, `damaged-${name}`);
        cpSync(path, copy, { recursive: true });
        const bytes = readFileSync(join(copy, name));
        const middle = Math.floor(bytes.length / 2);
        bytes.writeUInt8(bytes.readUInt8(middle) ^ 0x10, middle);
        writeFileSync(join(copy, name), bytes);
        const verdict = await open(copy, false).then(
          (index) =>
            index
              .verify()
              .then(() => 'nothing', codeOf)
              .finally(() => index.close()),
          codeOf,
        );
        expect({ name, verdict }).toEqual({ name, verdict: expect.stringMatching(/^index_(damaged|incompatible)$/) });
      }
    });
  });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
