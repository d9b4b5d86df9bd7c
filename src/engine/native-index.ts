import { rmSync } from 'node:fs';
import { definitionJson, type IndexDefinition } from '../index-kinds/all-kinds.ts';
import { awaitNative, callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';
import { NativeLinks } from './native-links.ts';

interface StatsJson {
  applied_sequence: number;
  checkpoint_sequence: number;
  doc_count: number;
  vector_count: number;
  term_count: number;
  segment_count: number;
  disk_bytes: number;
  memory_bytes: number;
}

/** One index of one range, held natively until `close`. Calls on one index come one at a time. */
export class NativeIndex {
  /** Names the index in queries. */
  readonly handle: number;
  /** Sequence of the commit that it was opened at; 0 for one that holds nothing. */
  readonly openedAtSequence: number;
  /** Of dense vectors alone. */
  readonly links: NativeLinks | undefined;

  private constructor(handle: number, { kind }: IndexDefinition) {
    this.handle = handle;
    this.links = kind === 'dense' ? new NativeLinks(handle) : undefined;
    this.openedAtSequence = this.stats().appliedSequence;
  }

  /**
   * Opens the index at its last checkpoint, or an empty one. `wipe` removes what the directory holds before; `isLoaded` is that
   * of `definitionJson`.
   * Throws IndexFaultError when the directory has to be wiped.
   */
  static async open(
    directory: string,
    definition: IndexDefinition,
    wipe: boolean,
    isLoaded = false,
  ): Promise<NativeIndex> {
    if (wipe) rmSync(directory, { recursive: true, force: true });
    const json = definitionJson(definition, isLoaded);
    return new NativeIndex(await awaitNative(() => nativeAddon().openIndex(directory, json)), definition);
  }

  /** Takes the rows of a document frame; they are seen after the next commit. */
  async apply(frame: Uint8Array): Promise<{ rows: number; skipped: { key: string; reason: string }[] }> {
    return JSON.parse(await awaitNative(() => nativeAddon().applyFrame(this.handle, frame)));
  }

  /**
   * Shows everything applied so far; `sequence` is the last one of it. `leftOut`: ordinals of all documents that this
   * commit lacks because what is stored of them is damaged; without it they are as before.
   */
  async commit(sequence: number, leftOut?: Uint32Array): Promise<void> {
    await awaitNative(() => nativeAddon().commitIndex(this.handle, sequence, leftOut));
  }

  /** Ordinals of the documents that are left out. */
  leftOut(): Uint32Array {
    return callNative(() => nativeAddon().indexLeftOut(this.handle));
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
      vectorCount: stats.vector_count,
      termCount: stats.term_count,
      segmentCount: stats.segment_count,
      diskBytes: stats.disk_bytes,
      memoryBytes: stats.memory_bytes,
    };
  }

  /** Bytes of index files that are in memory and wait for a checkpoint. */
  memoryBytes(): number {
    return callNative(() => nativeAddon().indexMemoryBytes(this.handle));
  }

  /** Begins what the index puts off until it rests. */
  async rest(): Promise<void> {
    await awaitNative(() => nativeAddon().restIndex(this.handle));
  }

  /** Compares the checksums of all files; throws IndexFaultError `index_damaged`. */
  async verify(): Promise<void> {
    await awaitNative(() => nativeAddon().verifyIndex(this.handle));
  }

  /** `close` follows soon: calls that wait for background work end without it. */
  closeSoon(): void {
    callNative(() => nativeAddon().closeIndexSoon(this.handle));
  }

  async close(): Promise<void> {
    await awaitNative(() => nativeAddon().closeIndex(this.handle));
  }
}
