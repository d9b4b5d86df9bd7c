import type { LimitOptions } from '../config/limits.ts';
import type { Clock } from '../lib/clock.ts';
import { pause } from '../lib/clock.ts';
import { KeyedMutex } from '../lib/concurrency/keyed-mutex.ts';
import type { Service } from '../lib/concurrency/supervise.ts';
import type { ClosedRanges } from './at-rest/closed-ranges.ts';
import { JointClosing, type JointDisk } from './at-rest/joint-closing.ts';
import type { RangeFacts } from './at-rest/range-facts.ts';
import type { IndexedRange } from './indexed-range.ts';

type Purpose = 'use' | 'upkeep';

/** A range kept open for as long as somebody uses it. Release by `using` or `[Symbol.dispose]`. */
export class RangeLease implements Disposable {
  readonly range: IndexedRange;
  readonly #release: (purpose: Purpose) => void;
  readonly #purpose: Purpose;

  constructor(range: IndexedRange, release: (purpose: Purpose) => void, purpose: Purpose) {
    this.range = range;
    this.#release = release;
    this.#purpose = purpose;
  }

  [Symbol.dispose](): void {
    this.#release(this.#purpose);
  }
}

export interface PoolOptions {
  /** Ranges that are open at one time, unless all of them are in use. */
  openRangesMax: number;
  /** Ranges that stay open however long nobody uses them. */
  warmRangesMax: number;
  /** Time without use after which a range beyond these is closed, milliseconds. */
  rangeIdleMs: number;
}

/** How many ranges may be open under a limit of descriptors; undefined for none. */
export function openRangesFor(
  descriptors: number | undefined,
  bounds: Pick<LimitOptions, 'openRangesMax' | 'rangeDescriptors' | 'otherDescriptors'>,
): number {
  if (descriptors === undefined) return bounds.openRangesMax;
  const room = Math.max(descriptors - bounds.otherDescriptors, descriptors / 2);
  return Math.max(1, Math.min(bounds.openRangesMax, Math.floor(room / bounds.rangeDescriptors)));
}

interface PoolDeps {
  open(rangeId: number): Promise<IndexedRange>;
  closed: ClosedRanges;
  options: PoolOptions;
  clock: Clock;
  /** The disk of the ranges, for making many of them durable together. */
  openDisk(): JointDisk;
  /** A range that nobody uses could not be closed cleanly. It is opened again when it is next used. */
  onCloseFailed(rangeId: number, error: unknown): void;
}

interface Slot {
  opening: Promise<IndexedRange>;
  /** Set when it is open. */
  range: IndexedRange | undefined;
  leases: number;
  /** Ends a lease. */
  readonly release: (purpose: Purpose) => void;
  /** When it was last used, monotonic milliseconds. */
  usedMs: number;
  /** Set when the range is to be closed; settles when it is. New leases wait for that and open it again. */
  closed: Promise<void> | undefined;
  onIdle: (() => void) | undefined;
}

/** Closings that may be under way before an opening waits for one of them: each still holds its files. */
const closingsMax = 16;
/** Idle ranges that are worth a sync of the whole file system, and how long they wait for one another, in milliseconds. */
const togetherMin = 4;
const idleClosingMs = 10_000;
/** Ranges of which nothing is known yet that are opened side by side to look at them. */
const looksAtOnce = 8;
/** Facts that are saved together at most; a crash loses the others, and those ranges are looked at again. */
const unsavedMax = 256;

/**
 * Ranges are opened when first used. Beyond a bound the one unused for longest is closed; those that nobody has used for
 * a while are closed as well, but for a few, so that a table at rest costs neither files nor memory.
 */
export class RangePool implements Service {
  readonly name = 'range-pool';
  readonly #deps: PoolDeps;
  /** In order of last use. */
  readonly #slots = new Map<number, Slot>();
  /** The last of them. */
  #newest: Slot | undefined;
  readonly #closings = new Set<Promise<void>>();
  readonly #looks = new KeyedMutex();
  #opened = 0;
  #evicted = 0;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
  }

  /** Ranges that are open now, without keeping them so. */
  openRanges(): IndexedRange[] {
    return [...this.#slots.values()].flatMap(({ range, closed }) => (range && !closed ? [range] : []));
  }

  /** Ranges that may be open at one time. */
  get openRangesMax(): number {
    return this.#deps.options.openRangesMax;
  }

  /** How often a range was opened, and how often one was closed because of the bounds, since the start. */
  get counts(): { opened: number; evicted: number } {
    return { opened: this.#opened, evicted: this.#evicted };
  }

  /** `purpose`: `upkeep` does not count as use, so that a range which only upkeep looks at is closed in the end. */
  async lease(rangeId: number, purpose: Purpose = 'use'): Promise<RangeLease> {
    for (let held = this.#slots.get(rangeId); held?.closed; held = this.#slots.get(rangeId)) {
      await held.closed.catch(() => undefined);
    }
    const slot = this.#slot(rangeId);
    slot.leases += 1;
    if (purpose === 'use') this.#moveToEnd(rangeId, slot);
    try {
      const range = await slot.opening;
      slot.range = range;
      return new RangeLease(range, slot.release, purpose);
    } catch (error) {
      this.#forget(rangeId, slot);
      this.#release(slot, purpose);
      throw error;
    }
  }

  /** A lease of a range that is open already; undefined where `lease` would have to wait. */
  leaseOpen(rangeId: number): RangeLease | undefined {
    const slot = this.#slots.get(rangeId);
    if (slot?.range === undefined || slot.closed) return undefined;
    slot.leases += 1;
    this.#moveToEnd(rangeId, slot);
    return new RangeLease(slot.range, slot.release, 'use');
  }

  #moveToEnd(rangeId: number, slot: Slot): void {
    if (slot === this.#newest) return;
    this.#slots.delete(rangeId);
    this.#slots.set(rangeId, slot);
    this.#newest = slot;
  }

  /** The facts of a range that are known at once: undefined while it opens or closes, and when nobody knows yet. */
  known(rangeId: number): RangeFacts | undefined {
    const slot = this.#slots.get(rangeId);
    if (!slot) return this.#deps.closed.get(rangeId);
    return slot.range && !slot.closed ? slot.range.facts() : undefined;
  }

  /** Facts of a range that is closed, when they are known. */
  knownClosed(rangeId: number): RangeFacts | undefined {
    return this.#slots.has(rangeId) ? undefined : this.#deps.closed.get(rangeId);
  }

  /** A range is opened for this only when nothing is known of it: after a kill, if it was written before. */
  async facts(rangeId: number): Promise<RangeFacts> {
    await this.#slots.get(rangeId)?.closed?.catch(() => undefined);
    return this.known(rangeId) ?? this.#looks.run(String(rangeId % looksAtOnce), () => this.#look(rangeId));
  }

  /** A range was created, and is not open yet. */
  created(rangeId: number, facts: RangeFacts): void {
    this.#deps.closed.note(rangeId, facts);
  }

  /** Waits for the users of a range to finish, then closes it. A range that is not open is left alone. */
  async close(rangeId: number): Promise<void> {
    await this.#end(
      rangeId,
      this.#noting(rangeId, (range) => range.close()),
    );
  }

  #noting(
    rangeId: number,
    close: (range: IndexedRange) => Promise<RangeFacts>,
  ): (range: IndexedRange) => Promise<void> {
    return async (range) => this.#deps.closed.note(rangeId, await close(range));
  }

  /** The range has taken an entry: what was known of it while it was closed is no longer true. */
  changed(rangeId: number): void {
    this.#deps.closed.forget(rangeId);
  }

  /**
   * As `close`, for a range that is about to be removed: what its indexes have yet to write is lost. Returns its last
   * sequence, when it is known.
   */
  async discard(rangeId: number): Promise<number | undefined> {
    let head = this.knownClosed(rangeId)?.head;
    await this.#end(rangeId, async (range) => {
      await range.discard();
      head = range.head;
    });
    this.#deps.closed.forget(rangeId);
    return head;
  }

  /**
   * Closes all ranges. What is not durable after `withinMs` is left as it is: the next opening replays what its
   * indexes lack.
   */
  async closeAll(withinMs: number): Promise<void> {
    const ended = await this.#closeTogether([...this.#slots.keys()], withinMs, (range) => range.leave());
    // A full disk does not take them, and these ranges are looked at again.
    await this.#deps.closed.save().catch(() => undefined);
    for (const outcome of ended) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async #closeTogether(
    rangeIds: readonly number[],
    withinMs: number,
    endLate: (range: IndexedRange) => Promise<RangeFacts>,
  ): Promise<PromiseSettledResult<void>[]> {
    if (rangeIds.length === 0) return [];
    const { clock } = this.#deps;
    using disk = this.#deps.openDisk();
    const closing = new JointClosing({ ranges: rangeIds.length, withinMs, clock, disk, endLate });
    return await Promise.allSettled(rangeIds.map((rangeId) => this.#closeAsOneOf(closing, rangeId)));
  }

  async #closeAsOneOf(closing: JointClosing, rangeId: number): Promise<void> {
    let hasCome = false;
    const close = this.#noting(rangeId, (range) => {
      hasCome = true;
      return closing.close(range);
    });
    try {
      await this.#end(rangeId, close);
    } finally {
      if (!hasCome) closing.absent();
    }
  }

  /** Closes what nobody uses, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#deps.closed.checkSaved(signal);
    while (!signal.aborted) {
      await pause(this.#deps.clock, this.#deps.options.rangeIdleMs / 4, signal);
      if (!signal.aborted) await this.closeIdle();
    }
  }

  /**
   * Closes the ranges that have had no use for long, but for the warm ones, and those that only upkeep has looked at; saves
   * what is known of closed ones.
   */
  async closeIdle(): Promise<void> {
    const { clock, options } = this.#deps;
    const before = clock.monotonicMs() - options.rangeIdleMs;
    const open = [...this.#slots].filter(([, { closed }]) => !closed);
    const unused = open.filter(([, { usedMs }]) => usedMs === Number.NEGATIVE_INFINITY);
    const used = open.filter(([, { usedMs }]) => usedMs !== Number.NEGATIVE_INFINITY);
    const warmMax = Math.min(options.warmRangesMax, options.openRangesMax);
    const idle = [...unused, ...used.slice(0, Math.max(0, used.length - warmMax))];
    for (let at = 0; at < idle.length; at += closingsMax) {
      const resting = idle.slice(at, at + closingsMax).filter(([, slot]) => isAtRest(slot) && slot.usedMs <= before);
      await this.#evictTogether(resting.map(([rangeId]) => rangeId));
    }
    // A catalog that cannot be written now is written with the next call, or at the stop.
    await this.#deps.closed.save().catch(() => undefined);
  }

  async #look(rangeId: number): Promise<RangeFacts> {
    using lease = await this.lease(rangeId, 'upkeep');
    return lease.range.facts();
  }

  async #end(rangeId: number, close: (range: IndexedRange) => Promise<void>): Promise<void> {
    const slot = this.#slots.get(rangeId);
    if (!slot) return;
    slot.closed ??= this.#whenUnused(rangeId, slot, close);
    await slot.closed;
  }

  async #whenUnused(rangeId: number, slot: Slot, close: (range: IndexedRange) => Promise<void>): Promise<void> {
    try {
      if (slot.leases > 0) {
        await new Promise<void>((resolve) => {
          slot.onIdle = resolve;
        });
      }
      await close(await slot.opening);
    } finally {
      this.#forget(rangeId, slot);
    }
  }

  #forget(rangeId: number, slot: Slot): void {
    if (this.#slots.get(rangeId) === slot) this.#slots.delete(rangeId);
    if (this.#newest === slot) this.#newest = undefined;
  }

  #slot(rangeId: number): Slot {
    const known = this.#slots.get(rangeId);
    if (known) return known;
    const slot: Slot = {
      opening: this.#open(rangeId),
      range: undefined,
      leases: 0,
      usedMs: Number.NEGATIVE_INFINITY,
      closed: undefined,
      onIdle: undefined,
      release: (purpose) => this.#release(slot, purpose),
    };
    this.#slots.set(rangeId, slot);
    this.#newest = slot;
    this.#makeRoom();
    return slot;
  }

  async #open(rangeId: number): Promise<IndexedRange> {
    // A range that closes for want of room has no users, so that its end depends on nobody who waits here.
    while (this.#closings.size >= closingsMax) await Promise.race(this.#closings);
    this.#deps.closed.forget(rangeId);
    this.#opened += 1;
    return this.#deps.open(rangeId);
  }

  /** Ranges whose indexes are at work are closed last: they would have to be opened again to go on. */
  #makeRoom(): void {
    const open = [...this.#slots].filter(([, { closed }]) => !closed);
    const excess = open.length - this.#deps.options.openRangesMax;
    if (excess <= 0) return;
    const unused = open.filter(([, { leases, range }]) => leases === 0 && range);
    const [resting, busy] = [unused.filter(([, slot]) => isAtRest(slot)), unused.filter(([, slot]) => !isAtRest(slot))];
    for (const [rangeId] of [...resting, ...busy].slice(0, excess)) void this.#evict(rangeId);
    if (this.#deps.closed.unsaved >= unsavedMax) void this.#deps.closed.save().catch(() => undefined);
  }

  #evict(rangeId: number): Promise<void> {
    this.#evicted += 1;
    const closing = this.close(rangeId)
      .catch((error: unknown) => this.#deps.onCloseFailed(rangeId, error))
      .finally(() => this.#closings.delete(closing));
    this.#closings.add(closing);
    return closing;
  }

  async #evictTogether(rangeIds: readonly number[]): Promise<void> {
    if (rangeIds.length < togetherMin) {
      await Promise.all(rangeIds.map((rangeId) => this.#evict(rangeId)));
      return;
    }
    this.#evicted += rangeIds.length;
    const ended = await this.#closeTogether(rangeIds, idleClosingMs, (range) => range.close());
    for (const [at, outcome] of ended.entries()) {
      if (outcome.status === 'rejected') this.#deps.onCloseFailed(rangeIds[at] ?? 0, outcome.reason);
    }
  }

  #release(slot: Slot, purpose: Purpose): void {
    slot.leases -= 1;
    if (purpose === 'use') slot.usedMs = this.#deps.clock.monotonicMs();
    if (slot.leases === 0) slot.onIdle?.();
  }
}

function isAtRest({ leases, range }: Slot): boolean {
  return leases === 0 && range?.isAtRest === true;
}
