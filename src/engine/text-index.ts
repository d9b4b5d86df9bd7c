import { rmSync } from 'node:fs';
import { awaitNative, callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

/** What a full-text index is opened with. */
export interface TextIndexOptions {
  name: string;
  /** A directory that another incarnation wrote is not opened. */
  incarnation: string;
  /** Nothing is written to disk. */
  memOnly: boolean;
  /** The table's schema in its wire form. */
  schema: unknown;
}

interface StatsJson {
  applied_sequence: number;
  checkpoint_sequence: number;
  doc_count: number;
  term_count: number;
  segment_count: number;
  disk_bytes: number;
  memory_bytes: number;
}

/** One full-text index of one range, held natively until `close`. Calls on one index come one at a time. */
export class NativeTextIndex {
  /** Names the index in queries. */
  readonly handle: number;
  /** Sequence of the commit that it was opened at; 0 for one that holds nothing. */
  readonly openedAtSequence: number;

  private constructor(handle: number) {
    this.handle = handle;
    this.openedAtSequence = this.stats().appliedSequence;
  }

  /**
   * Opens the index at its last checkpoint, or an empty one. `wipe` removes what the directory holds before.
   * Throws IndexFaultError when the directory has to be wiped.
   */
  static async open(directory: string, options: TextIndexOptions, wipe: boolean): Promise<NativeTextIndex> {
    if (wipe) rmSync(directory, { recursive: true, force: true });
    const json = JSON.stringify({ type: 'full_text', ...indexOptions(options) });
    return new NativeTextIndex(await awaitNative(() => nativeAddon().openIndex(directory, json)));
  }

  /** Takes the rows of a document frame; they are seen after the next commit. */
  async apply(frame: Uint8Array): Promise<{ rows: number; skipped: { key: string; reason: string }[] }> {
    return JSON.parse(await awaitNative(() => nativeAddon().applyFrame(this.handle, frame)));
  }

  /** Shows everything applied so far; `sequence` is the last one of it. */
  async commit(sequence: number): Promise<void> {
    await awaitNative(() => nativeAddon().commitIndex(this.handle, sequence));
  }

  /** Makes the last commit durable. */
  async checkpoint(): Promise<{ sequence: number; bytes: number }> {
    const report = JSON.parse(await awaitNative(() => nativeAddon().checkpointIndex(this.handle)));
    return { sequence: report.sequence as number, bytes: report.bytes_written as number };
  }

  stats() {
    const stats = JSON.parse(callNative(() => nativeAddon().indexStats(this.handle))) as StatsJson;
    return {
      appliedSequence: stats.applied_sequence,
      checkpointSequence: stats.checkpoint_sequence,
      docCount: stats.doc_count,
      termCount: stats.term_count,
      segmentCount: stats.segment_count,
      diskBytes: stats.disk_bytes,
      memoryBytes: stats.memory_bytes,
    };
  }

  /** Gives the writer's memory and threads back until the next apply. */
  async releaseWriter(): Promise<void> {
    await awaitNative(() => nativeAddon().releaseIndexWriter(this.handle));
  }

  /** Compares the checksums of all files; throws IndexFaultError `index_damaged`. */
  async verify(): Promise<void> {
    await awaitNative(() => nativeAddon().verifyIndex(this.handle));
  }

  async close(): Promise<void> {
    await awaitNative(() => nativeAddon().closeIndex(this.handle));
  }
}

function indexOptions({ name, incarnation, memOnly, schema }: TextIndexOptions) {
  return { name, incarnation, mem_only: memOnly, schema: schema ?? null };
}

/** Options for the mapping of `schema` alone. */
function mappingOptionsJson(schema: unknown): string {
  return JSON.stringify(indexOptions({ name: 'match', incarnation: '', memOnly: true, schema }));
}

const noLegs = { vectorHandles: [], vectors: new Uint8Array() };
let nextOperation = 1;

/**
 * Runs a plan over the indexes of a table's ranges. Statistics, order and page are those of all of them together.
 * `handles`: the text index of each range; `vectorHandles`: for each leg of the plan its index of each range, leg
 * after leg; `vectors`: the query vectors of the legs, one after another.
 * An aborted signal stops the call within about a thousand documents; it then throws `query_timeout`.
 */
export async function queryTextIndexes(
  handles: number[],
  planJson: string,
  signal: AbortSignal,
  { vectorHandles, vectors }: { vectorHandles: number[]; vectors: Uint8Array } = noLegs,
) {
  const addon = nativeAddon();
  const operation = nextOperation;
  nextOperation = (nextOperation % 0x7fff_ffff) + 1;
  const cancel = () => callNative(() => addon.cancel(operation));
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await awaitNative(() => addon.query(handles, vectorHandles, planJson, vectors, operation));
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** One byte a row of the frame: 1 where the stored body matches the plan, by the mapping of `schema`. */
export async function matchDocuments(schema: unknown, planJson: string, frame: Uint8Array): Promise<Uint8Array> {
  return awaitNative(() => nativeAddon().matchDocuments(mappingOptionsJson(schema), planJson, frame));
}

/** One object of path -> marked fragments for each row of the frame, by the mapping of `schema`. */
export async function highlightDocuments(
  schema: unknown,
  planJson: string,
  highlightJson: string,
  frame: Uint8Array,
): Promise<Record<string, string[]>[]> {
  const options = mappingOptionsJson(schema);
  return JSON.parse(await awaitNative(() => nativeAddon().highlightDocuments(options, planJson, highlightJson, frame)));
}
