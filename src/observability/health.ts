/**
 * Kinds of faults that stand for a while. Each is a label of metrics, so the list is closed: `disk_full`,
 * `disk_read_only` and `disk_failed` concern the disk; `file_damaged` a file of documents or the catalog; `log_damaged`
 * a write-ahead log that lacks acknowledged writes; `documents_damaged` single rows; `redo_pending` a committed write
 * that a range has yet to take; `writes_refused` the file of a range, or the catalog, that takes no writes while the
 * disk takes others; `index_failed` an index that a fault has closed; `index_unwritten` an index whose checkpoint
 * cannot be written, and that is searched all the same; `audit_failed` the audit log, which lacks lines or has outgrown
 * its bounds.
 */
export const faultKinds = [
  'disk_full',
  'disk_read_only',
  'disk_failed',
  'file_damaged',
  'log_damaged',
  'documents_damaged',
  'redo_pending',
  'writes_refused',
  'index_failed',
  'index_unwritten',
  'audit_failed',
] as const;
export type FaultKind = (typeof faultKinds)[number];

/** The subject of a fault: one range, one index of a range, or without both the whole node. */
export interface FaultSubject {
  rangeId?: number;
  index?: string;
}

export interface Fault extends FaultSubject {
  kind: FaultKind;
  /** The operations that fail while it stands. `reads`: neither reads nor writes; `nothing`: all is served. */
  blocks: 'reads' | 'writes' | 'nothing';
  /** A message for people: the event and what to do. It is shown in answers: no path, no key, no text of a document. */
  message: string;
  /** Facts for the log, never for an answer. */
  details?: Readonly<Record<string, unknown>>;
}

export type HealthState = 'healthy' | 'degraded' | 'unhealthy';

/** The listener of faults as they come and go. */
interface HealthObserver {
  /** `isNew` is false when the same fault stood already. */
  raised?(fault: Fault, isNew: boolean): void;
  cleared?(fault: Fault): void;
  /** A stored document or vector was found damaged that was not known to be. */
  documentDamaged?(rangeId: number): void;
}

/** Damaged keys that are remembered for each range, so that reading one again does not count it again. */
const damagedKeysMax = 10_000;

/**
 * The faults that stand now. Whatever meets a fault raises it here, and clears it when it is over; status, readiness,
 * log and metrics say what stands. A fault is known by its kind and its subject.
 */
export class Health {
  readonly #faults = new Map<string, Fault>();
  readonly #damaged = new Map<number, Set<string>>();
  readonly #observer: HealthObserver;

  constructor(observer: HealthObserver = {}) {
    this.#observer = observer;
  }

  /** Replaces the fault of this kind and subject, if one stands. */
  raise(fault: Fault): void {
    const id = idOf(fault);
    const isNew = !this.#faults.has(id);
    this.#faults.set(id, fault);
    this.#observer.raised?.(fault, isNew);
  }

  /** Does nothing when no such fault stands. */
  clear(kind: FaultKind, subject: FaultSubject = {}): void {
    const id = idOf({ kind, ...subject });
    const fault = this.#faults.get(id);
    if (!fault) return;
    this.#faults.delete(id);
    this.#observer.cleared?.(fault);
  }

  /** Forgets everything about a range that is gone. */
  forgetRange(rangeId: number): void {
    this.#damaged.delete(rangeId);
    for (const [id, fault] of this.#faults) if (fault.rangeId === rangeId) this.#faults.delete(id);
  }

  /** A stored document or vector of this key does not match its checksum. */
  documentDamaged(rangeId: number, key: string): void {
    const keys = this.#damaged.get(rangeId) ?? new Set();
    this.#damaged.set(rangeId, keys);
    if (keys.has(key) || keys.size === damagedKeysMax) return;
    keys.add(key);
    this.#observer.documentDamaged?.(rangeId);
    this.raise(damagedDocuments(rangeId, keys.size));
  }

  /** All rows of the range were read, and only those of `damagedKeys` are damaged. */
  rangeRead(rangeId: number, damagedKeys: ReadonlySet<string>): void {
    const keys = this.#damaged.get(rangeId);
    if (!keys) return;
    for (const key of keys) if (!damagedKeys.has(key)) keys.delete(key);
    if (keys.size > 0) {
      this.raise(damagedDocuments(rangeId, keys.size));
      return;
    }
    this.#damaged.delete(rangeId);
    this.clear('documents_damaged', { rangeId });
  }

  /** The faults that stand, the oldest first. */
  faults(): Fault[] {
    return [...this.#faults.values()];
  }

  /** Faults that keep reads or writes from being served, somewhere on the node. */
  blocking(): Fault[] {
    return this.faults().filter(({ blocks }) => blocks !== 'nothing');
  }

  /** Unhealthy when the node as a whole cannot read or write, degraded when anything else is wrong. */
  get state(): HealthState {
    return stateOf(this.faults());
  }
}

/** The state of what these faults concern; for the node, those of its ranges only degrade it. */
export function stateOf(faults: readonly Fault[], within: 'node' | 'range' = 'node'): HealthState {
  if (faults.length === 0) return 'healthy';
  const blocking = faults.filter(({ blocks }) => blocks !== 'nothing');
  const isDown = blocking.some(({ rangeId }) => within === 'range' || rangeId === undefined);
  return isDown ? 'unhealthy' : 'degraded';
}

function damagedDocuments(rangeId: number, count: number): Fault {
  const what = count === 1 ? 'one stored document is damaged' : `${count} stored documents are damaged`;
  const message = `${what}; "sundew check" names the keys, and writing a document again mends it`;
  return { kind: 'documents_damaged', rangeId, blocks: 'nothing', message };
}

function idOf({ kind, rangeId, index }: { kind: FaultKind } & FaultSubject): string {
  return `${kind}/${rangeId ?? ''}/${index ?? ''}`;
}
