import type { Clock } from '../../lib/clock.ts';
import type { IndexSource, OpenRangeIndex, RangeIndex } from '../range-index.ts';
import type { WriterBudget } from '../writer-budget.ts';
import type { AppliedIndexEvents } from './applied-index.ts';
import type { QueueOptions } from './page-queue.ts';
import type { PublishOptions } from './publish-schedule.ts';

/** Bounds of one applier; all come from `limits.ts`. */
export interface ApplierOptions extends PublishOptions, QueueOptions {
  /** Idle time after which the writer's threads and memory are given back and work put off is done, in milliseconds. */
  writerIdleMs: number;
  /** Time from the opening of an index to the look for damage in its files, in milliseconds. */
  verifyDelayMs: number;
}

export interface ApplierEvents extends AppliedIndexEvents {
  opened?(index: RangeIndex, headSequence: number): void;
  skipped?(documents: { key: string; reason: string }[]): void;
  failed?(error: unknown, attempt: number): void;
  /** It has come up to its range. */
  live?(): void;
  /** Nothing follows: the index was closed for good. */
  closed?(): void;
  /** The index is about to be built from the documents again: `damage`, `failures`, or `outdated` after an upgrade. */
  rebuilding?(reason: string): void;
}

/** The services and values of one applier. */
export interface ApplierDeps {
  open: OpenRangeIndex;
  source: IndexSource;
  clock: Clock;
  options: ApplierOptions;
  events?: ApplierEvents;
  /** Of the parts that the index is built from; without one it is built from the documents. */
  partId?: number | undefined;
  /** Of an index that is opened again: settles when who has followed it before has closed its files. */
  predecessorClosed?: Promise<void> | undefined;
  /** As in `DamageWatch`; without it, an index whose files are sound is never built again. */
  mayDoubt?: () => boolean;
  /** Shared by all indexes; without one, a writer is kept until it is idle. */
  writers?: WriterBudget;
}
