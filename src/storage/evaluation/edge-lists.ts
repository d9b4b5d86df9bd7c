import type { DocumentFrame } from '../../lib/document-frame.ts';
import { rowKeepsDeclared } from '../../lib/document-frame.ts';
import { keysAt } from '../../lib/document-path.ts';
import { compareEdges, type Edge, edgeCountOf, edgesBody, edgesMax, readEdges } from '../../lib/parts/edges-part.ts';
import { formOfBody, partForm, partIdOfBody, sourceHashOf } from '../../lib/parts/part-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { StoredPart } from '../range/part-rows.ts';
import type { RangeWriter } from '../range/range-writer.ts';
import type { EdgeUpkeep, GraphRules, GraphWrites } from '../write-request.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether a body is a list of edges, which depends on the list that the document has already. */
export function isEdgeList(body: Uint8Array): boolean {
  return formOfBody(body) === partForm.edges;
}

/** Whether a list may be stored as it came, for a document that has none yet. */
export function isWholeList(body: Uint8Array): boolean {
  return edgeCountOf(body) > 0;
}

interface Merged {
  readonly ordinal: number | undefined;
  readonly keepsDeclared: boolean;
  readonly key: () => string;
  /** The source of the list, where the server has made it. */
  readonly stamp?: Uint8Array | undefined;
}

/** Makes the lists of edges that documents have after a write. */
export class EdgeLists {
  readonly #file: RangeWriter;
  readonly #graphs: readonly GraphRules[];
  readonly #timeMs: number;
  readonly #removed: ReadonlyMap<string, number>;

  constructor(file: RangeWriter, graphs: GraphWrites | undefined, timeMs: number) {
    this.#file = file;
    this.#graphs = graphs?.indexes ?? [];
    this.#timeMs = timeMs;
    this.#removed = new Map(graphs?.removed);
  }

  /**
   * The list of a document after a row of `frame`; undefined for none. An edge that was there keeps the time of its
   * creation, unless it had expired or its target was deleted since. Fails with `too_many_edges`, and with `data_corrupted` where
   * edges of a damaged list would stay.
   */
  merged(frame: DocumentFrame, row: number, ordinal: number | undefined): Uint8Array<ArrayBuffer> | undefined {
    const body = frame.body(row);
    const keepsDeclared = (frame.flags(row) & rowKeepsDeclared) !== 0;
    const how = { ordinal, keepsDeclared, key: () => frame.key(row), stamp: sourceHashOf(body) };
    return this.#merged(partIdOfBody(body), readEdges(body), how);
  }

  #merged(
    partId: number,
    written: readonly Edge[],
    { ordinal, keepsDeclared, key, stamp }: Merged,
  ): Uint8Array<ArrayBuffer> | undefined {
    const held = ordinal === undefined ? [] : this.#held(ordinal, partId);
    const rules = this.#rules(partId);
    if (held === 'damaged' && keepsDeclared) throw damagedList(key(), rules?.name ?? partId);
    const expiredMs = this.#expiredMs(partId);
    const live = (held === 'damaged' ? [] : held).filter((edge) => this.#isLive(edge, expiredMs));
    const edges = withTimesOf(live, written);
    if (keepsDeclared) edges.push(...live.filter(({ origin }) => origin === 'declared'));
    const most = rules?.maxEdges || edgesMax;
    if (edges.length > most) {
      const name = rules?.name ?? partId;
      const message = `document "${key()}": "_edges.${name}" would have ${edges.length} edges; the index takes ${most}`;
      throw new ServiceError('too_many_edges', message);
    }
    return edges.length === 0 ? undefined : edgesBody(partId, edges, stamp);
  }

  /** Edges that were created at this time or before have expired. */
  #expiredMs(partId: number): number {
    const { ttlMs } = this.#rules(partId) ?? {};
    return ttlMs === undefined ? Number.NEGATIVE_INFINITY : this.#timeMs - ttlMs;
  }

  #isLive({ createdMs, target, since }: Edge, expiredMs: number): boolean {
    return createdMs > expiredMs && since > (this.#removed.get(target) ?? -1);
  }

  /** Whether a document's list is what a row says, times left aside; what has expired or is removed is not in it. */
  equals(frame: DocumentFrame, row: number, ordinal: number): boolean {
    const body = frame.body(row);
    const keepsDeclared = (frame.flags(row) & rowKeepsDeclared) !== 0;
    const partId = partIdOfBody(body);
    const expiredMs = this.#expiredMs(partId);
    const stored = this.#held(ordinal, partId);
    if (stored === 'damaged') return false;
    const held = stored.filter(
      (edge) => !(keepsDeclared && edge.origin === 'declared') && this.#isLive(edge, expiredMs),
    );
    const written = readEdges(body);
    return (
      held.length === written.length &&
      written.every((edge, at) => {
        const other = held[at];
        const isAlike = other !== undefined && compareEdges(edge, other) === 0;
        return isAlike && edge.weight === other.weight && edge.metadata === other.metadata;
      })
    );
  }

  /** The lists that a transform changes: part id -> the new list, undefined for none. Fails with `invalid_edge`. */
  afterTransform(
    before: { body: Uint8Array; ordinal: number } | undefined,
    after: Uint8Array,
    key: string,
  ): Map<number, Uint8Array<ArrayBuffer> | undefined> {
    const changed = new Map<number, Uint8Array<ArrayBuffer> | undefined>();
    const graphs = this.#graphs.filter(({ fields }) => fields.length > 0);
    if (graphs.length === 0) return changed;
    const documents = [before?.body, after].map((body) => (body ? JSON.parse(decoder.decode(body)) : {}));
    for (const rules of graphs) {
      const [old, now] = documents.map((document) => this.#derived(rules, document, key)) as [Edge[], Edge[]];
      const changedTypes = typesThatDiffer(old, now);
      if (changedTypes.size === 0 && before) continue;
      const ordinal = before?.ordinal;
      const stated = this.#withoutDead(now, changedTypes, ordinal, rules.partId);
      const list = this.#merged(rules.partId, stated, { ordinal, keepsDeclared: true, key: () => key });
      // A list says that its document was written since the index is there, also where nothing of it is left.
      changed.set(rules.partId, list ?? (now.length > 0 ? edgesBody(rules.partId, []) : undefined));
    }
    return changed;
  }

  /**
   * Without the edges of unchanged fields that are gone: only a field that changes states its edges again. A document from
   * before the index has no list, and none of its edges is gone.
   */
  #withoutDead(edges: Edge[], changedTypes: ReadonlySet<string>, ordinal: number | undefined, partId: number): Edge[] {
    if (ordinal === undefined || !this.#file.loadPart(ordinal, partId)) return edges;
    const expiredMs = this.#expiredMs(partId);
    const held = this.#held(ordinal, partId);
    if (held === 'damaged') return edges;
    const live = namesOf(held.filter((edge) => this.#isLive(edge, expiredMs)));
    return edges.filter((edge) => changedTypes.has(edge.type) || live.has(nameOf(edge)));
  }

  /** Sorted, each once. */
  #derived({ fields, name }: GraphRules, document: unknown, key: string): Edge[] {
    const edges = new Map<string, Edge>();
    for (const { type, path } of fields) {
      const targets = keysAt(document, path);
      if (!targets) {
        const message = `document "${key}": "_edges.${name}" makes edges of the field "${path}", which must hold a key or an array of keys`;
        throw new ServiceError('invalid_edge', message);
      }
      const [createdMs, updatedMs] = [this.#timeMs, this.#timeMs];
      for (const target of targets) {
        const times = { createdMs, updatedMs, since: 0 };
        edges.set(`${type}\0${target}`, { type, target, origin: 'derived', weight: 1, ...times, metadata: '' });
      }
    }
    return [...edges.values()].sort(compareEdges);
  }

  /** The list without what has expired or leads to a removed document; 'same' where all of it stays, or it is damaged. */
  swept(upkeep: EdgeUpkeep, ordinal: number): Uint8Array<ArrayBuffer> | undefined | 'same' {
    const { partId, expiredAtOrBeforeMs = Number.NEGATIVE_INFINITY, removed = [], keepsEmpty } = upkeep;
    const through = new Map(removed);
    const part = this.#file.loadPart(ordinal, partId);
    const held = part ? heldEdges(part) : [];
    if (held === 'damaged') return 'same';
    const kept = held.filter(({ createdMs, target, since }) => {
      return createdMs > expiredAtOrBeforeMs && since > (through.get(target) ?? -1);
    });
    if (kept.length === held.length) return 'same';
    const stamp = part && sourceHashOf(part.body);
    // A list that was made says so also when it is empty: it is not to be made again.
    return kept.length === 0 && !stamp && !keepsEmpty ? undefined : edgesBody(partId, kept, stamp);
  }

  /** The stored list, each edge with the sequence by which it was written. */
  #held(ordinal: number, partId: number): Edge[] | 'damaged' {
    const part = this.#file.loadPart(ordinal, partId);
    return part ? heldEdges(part) : [];
  }

  #rules(partId: number): GraphRules | undefined {
    return this.#graphs.find((rules) => rules.partId === partId);
  }
}

/** The types of edges of which two documents have not the same ones; a field makes edges of one type. */
function typesThatDiffer(old: readonly Edge[], now: readonly Edge[]): ReadonlySet<string> {
  const [before, after] = [namesOf(old), namesOf(now)];
  const gone = old.filter((edge) => !after.has(nameOf(edge)));
  const added = now.filter((edge) => !before.has(nameOf(edge)));
  return new Set([...gone, ...added].map(({ type }) => type));
}

function namesOf(edges: readonly Edge[]): ReadonlySet<string> {
  return new Set(edges.map(nameOf));
}

/** Equal for edges that `compareEdges` finds equal. */
function nameOf({ type, target, origin }: Edge): string {
  return `${origin}\0${type}\0${target}`;
}

function heldEdges({ body, crc, sequence }: StoredPart): Edge[] | 'damaged' {
  if (Bun.hash.crc32(body) !== crc) return 'damaged';
  if (!isEdgeList(body)) return [];
  const edges = readEdges(body);
  for (const edge of edges) if (edge.since === 0) edge.since = sequence;
  return edges;
}

function damagedList(key: string, name: string | number): ServiceError {
  const message = `document "${key}": the stored edges do not match their checksum; write it with all of its "_edges.${name}"`;
  return new ServiceError('data_corrupted', message, { details: { key } });
}

/** Edges with the time at which those of `before` that they are were created. Both lists are sorted. */
function withTimesOf(before: readonly Edge[], written: readonly Edge[]): Edge[] {
  let at = 0;
  return written.map((edge) => {
    while (at < before.length && compareEdges(before[at] as Edge, edge) < 0) at += 1;
    const same = before[at];
    return same && compareEdges(same, edge) === 0 ? { ...edge, createdMs: same.createdMs } : edge;
  });
}
