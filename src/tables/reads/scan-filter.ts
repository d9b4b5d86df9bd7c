import { isEngineFault, searchFailure } from '../../engine/engine-error.ts';
import { matchingOrdinals } from '../../engine/native-query.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { hasOrdinal } from '../../lib/ordinal-bits.ts';
import { matchStored } from '../../query/execution/open-target.ts';
import type { IndexedBodies } from '../../query/indexed-bodies.ts';
import type { NativePlan } from '../../query/plan/native-plan.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { Table } from '../table.ts';

/** The answer of an index about a filter. */
interface IndexedMatches {
  /** It shows every row up to this sequence. */
  throughSequence: number;
  /** A bit for each ordinal that it lets through, the first in the lowest bit of the first byte. */
  ordinals: Uint8Array;
}

interface ScanFilterDeps {
  /** By which change a document, or what was made of it, came to be. */
  sequenceOf(document: StoredDocument): number;
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

  /**
   * Asks the index, once it can be. Rows are to be read after this: one that was read before and has changed while the index
   * was asked would be shown for what it has become.
   */
  async ready(): Promise<void> {
    this.#indexed ??= await this.#deps.indexed();
  }

  /** For rows that were read after `ready`. */
  async matches(documents: StoredDocument[]): Promise<boolean[]> {
    const indexed = this.#indexed;
    if (!indexed) return this.#deps.stored(documents);
    const changed = documents.filter((document) => this.#deps.sequenceOf(document) > indexed.throughSequence);
    const changedMatch = changed.length === 0 ? [] : await this.#deps.stored(changed);
    const matchOfChanged = new Map(changed.map(({ ordinal }, at) => [ordinal, changedMatch[at] === true]));
    return documents.map(({ ordinal }) => matchOfChanged.get(ordinal) ?? hasOrdinal(indexed.ordinals, ordinal));
  }

  /** The answer of the index for a row whose body cannot be read; undefined where it has not seen it. */
  showed({ ordinal, sequence }: { ordinal: number; sequence: number }): boolean | undefined {
    const indexed = this.#indexed;
    return indexed && sequence <= indexed.throughSequence ? hasOrdinal(indexed.ordinals, ordinal) : undefined;
  }
}

/** The filter of a table, and the readers of its documents. */
interface FilteredTable {
  readonly table: Table;
  readonly plan: NativePlan;
  readonly bodies: IndexedBodies;
}

/** The filter of a plan over one range of a table. */
export function scanFilterOf(
  range: IndexedRange,
  { table, plan, bodies }: FilteredTable,
  signal: AbortSignal,
): ScanFilter {
  return new ScanFilter({
    sequenceOf: (document) => bodies.sequenceOf(document),
    indexed: () => indexedMatches(table, range, plan, signal),
    stored: (documents) => matchStored(table, plan, documents, bodies),
  });
}

/** Whether the index shows a document of this key that the plan lets through. */
export async function isIndexed(
  key: string,
  table: Table,
  range: IndexedRange,
  plan: NativePlan,
  signal: AbortSignal,
): Promise<boolean> {
  const withKey: NativePlan = { ...plan, filter: [...plan.filter, { kind: 'ids', ids: [key], boost: 1 }] };
  const indexed = await indexedMatches(table, range, withKey, signal);
  return indexed?.ordinals.some((byte) => byte !== 0) ?? false;
}

async function indexedMatches(
  table: Table,
  range: IndexedRange,
  plan: NativePlan,
  signal: AbortSignal,
): Promise<IndexedMatches | undefined> {
  const applier = range.applier(table.servingIndex.name);
  const index = applier?.index;
  // One that lacks documents, as after damage, says nothing of those: bodies are matched.
  if (!applier?.isServing || !index || !applier.isWhole) return undefined;
  // Read first: what the index shows by the time that it is asked is this or more.
  const throughSequence = applier.progress.published;
  try {
    const ordinals = await matchingOrdinals(index.handle, JSON.stringify(plan), { signal });
    return { throughSequence, ordinals };
  } catch (error) {
    if (signal.aborted) return undefined;
    // Bodies are matched in place of an index that may be damaged.
    if (applier.index !== index) return undefined;
    if (isEngineFault(error) && (await applier.searchFailed(signal))) return undefined;
    throw searchFailure(error);
  }
}
