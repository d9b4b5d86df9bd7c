import { matchingOrdinals } from '../../engine/native-query.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { matchStored } from '../../query/execution/open-target.ts';
import type { NativePlan } from '../../query/plan/native-plan.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { Table } from '../table.ts';

/** What an index says of a filter. */
interface IndexedMatches {
  /** It shows every row up to this sequence. */
  throughSequence: number;
  /** A bit for each ordinal that it lets through, the first in the lowest bit of the first byte. */
  ordinals: Uint8Array;
}

interface ScanFilterDeps {
  /** Undefined while the index cannot be asked. */
  indexed(): Promise<IndexedMatches | undefined>;
  /** Which of the documents match by their bodies. */
  stored(documents: StoredDocument[]): Promise<boolean[]>;
}

/**
 * Tells which documents of a range match a filter. To match a body costs tens of microseconds, so the index is asked once
 * for all that it lets through; only rows that have changed since then are matched by their bodies.
 */
export class ScanFilter {
  readonly #deps: ScanFilterDeps;
  #indexed: IndexedMatches | undefined;

  constructor(deps: ScanFilterDeps) {
    this.#deps = deps;
  }

  /** For rows of a page, read before this is called. */
  async matches(documents: StoredDocument[]): Promise<boolean[]> {
    this.#indexed ??= await this.#deps.indexed();
    const indexed = this.#indexed;
    if (!indexed) return this.#deps.stored(documents);
    const changed = documents.filter(({ sequence }) => sequence > indexed.throughSequence);
    const changedMatch = changed.length === 0 ? [] : await this.#deps.stored(changed);
    const matchOfChanged = new Map(changed.map(({ ordinal }, at) => [ordinal, changedMatch[at] === true]));
    return documents.map(({ ordinal }) => matchOfChanged.get(ordinal) ?? holds(indexed.ordinals, ordinal));
  }
}

function holds(ordinals: Uint8Array, ordinal: number): boolean {
  return (((ordinals[Math.floor(ordinal / 8)] ?? 0) >> (ordinal % 8)) & 1) === 1;
}

/** The filter of a plan over one range of a table. */
export function scanFilterOf(table: Table, range: IndexedRange, plan: NativePlan, signal: AbortSignal): ScanFilter {
  const planJson = JSON.stringify(plan);
  return new ScanFilter({
    async indexed() {
      const applier = range.applier(table.servingIndex.name);
      if (!applier?.isServing || !applier.index) return undefined;
      // Read first: what the index shows by the time that it is asked is this or more.
      const throughSequence = applier.progress.published;
      try {
        return { throughSequence, ordinals: await matchingOrdinals(applier.index.handle, planJson, { signal }) };
      } catch (error) {
        if (signal.aborted) return undefined;
        throw error;
      }
    },
    stored: (documents) => matchStored(table, plan, documents),
  });
}
