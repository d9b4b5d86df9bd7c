import { limits } from '../../config/limits.ts';
import { graphsAmong } from '../../index-kinds/all-kinds.ts';
import type { GraphDefinition } from '../../index-kinds/graph.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import { readEdges } from '../../lib/parts/edges-part.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import { unprovenChanges } from '../../storage/evaluation/tree-changes.ts';
import type { ReadAssertion, TreeChange, WriteRequest } from '../../storage/write-request.ts';
import type { Table } from '../table.ts';
import { intervalOf } from '../writes/frame-split.ts';
import { hasTrees } from './graph-writes.ts';
import { removedTargetsOf } from './removed-targets.ts';

/** A table that a request writes to, with all of its ranges held open. */
interface WrittenTable {
  table: Table;
  ranges: readonly IndexedRange[];
}

/** Times that a request is sent again because ancestors have changed under it. */
const attemptsMax = 20;

/**
 * Appends a request. Where it changes edges of a tree, it is looked at whether they make a tree, and the request is committed
 * only if what that depends on has stayed as it was. Fails as `RangeLog.append`, and with `tree_topology_violation`.
 */
export async function appendToTrees(log: RangeLog, request: WriteRequest, tables: readonly WrittenTable[]) {
  if (!tables.some(({ table }) => hasTrees(table))) return log.append(request);
  let proof: TreeProof | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await log.append(withProof(request, proof));
    } catch (error) {
      if (attempt === attemptsMax) throw isConflict(error) ? error : changedMeanwhile();
      const changes = unprovenChanges(error);
      if (changes) proof = new TreeProof(request, tables, changes);
      // The documents that the proof was read from have changed: they are read again.
      else if (proof && isConflict(error)) proof = undefined;
      else throw error;
    }
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'transaction_conflict';
}

function changedMeanwhile(): ServiceError {
  return new ServiceError('transaction_conflict', 'the ancestors of a document keep changing; send the write again');
}

/** The buffers of a request are given away with it, and it may be sent again. */
function withProof(request: WriteRequest, proof: TreeProof | undefined): WriteRequest {
  const writes = request.writes.map((write) => (write.frame ? { ...write, frame: write.frame.slice() } : write));
  if (!proof) return { ...request, writes };
  return { ...request, writes, readSet: [...(request.readSet ?? []), ...proof.readSet()], provenTrees: proof.changes };
}

/** Finds whether changes leave trees, and what that depends on. */
class TreeProof {
  readonly changes: readonly TreeChange[];
  readonly #request: WriteRequest;
  readonly #tables: readonly WrittenTable[];
  readonly #readSet = new Map<string, ReadAssertion>();

  /** Fails with `tree_topology_violation`. */
  constructor(request: WriteRequest, tables: readonly WrittenTable[], changes: readonly TreeChange[]) {
    this.changes = changes;
    this.#request = request;
    this.#tables = tables;
    const trees = Map.groupBy(changes, ({ rangeId, partId, type }) => {
      return `${this.#tableOf(rangeId).table.name}\0${partId}\0${type}`;
    });
    for (const ofTree of trees.values()) this.#prove(ofTree);
  }

  readSet(): ReadAssertion[] {
    return [...this.#readSet.values()];
  }

  #prove(changes: readonly TreeChange[]): void {
    const [{ rangeId, partId, type }] = changes as [TreeChange];
    const written = this.#tableOf(rangeId);
    const graphs = graphsAmong(written.table.indexes.map(({ definition }) => definition));
    const graph = must(
      graphs.find((each) => each.partId === partId),
      'a tree without its index',
    );
    const removed = removedTargetsOf(written.ranges);
    const isLive = (target: string, since: number, range: number) => since > (removed[target]?.[range] ?? -1);
    const refuse = (source: string, target: string, why: string) => {
      const message = `document "${source}": the edge "${type}" to "${target}" in the index "${graph.name}" ${why}`;
      return new ServiceError('tree_topology_violation', message);
    };
    const parents = new Map<string, string | undefined>();
    for (const { source, targets } of changes) {
      const range = intervalOf(source, written.table.ranges);
      const live = targets.filter(({ key, since }) => since === 0 || isLive(key, since, range));
      // Declared, and also from a field, an edge is one.
      const keys = [...new Set(live.map(({ key }) => key))];
      const [first, second] = keys;
      if (second !== undefined) throw refuse(source, second, `would be its second parent beside "${first}"`);
      parents.set(source, first);
    }
    const parentOf = (key: string): string | undefined => {
      if (!parents.has(key)) parents.set(key, this.#storedParent(written, graph, type, key, isLive));
      return parents.get(key);
    };
    const proven = new Set<string>();
    for (const { source } of changes) {
      const way = new Set([source]);
      const first = parentOf(source);
      for (let here = first; here !== undefined && !proven.has(here); here = parentOf(here)) {
        if (way.has(here)) throw refuse(source, first ?? here, 'would close a cycle');
        way.add(here);
        if (way.size > limits.graphTreeDepthMax) {
          throw refuse(source, first ?? here, `would have more than ${limits.graphTreeDepthMax} ancestors`);
        }
      }
      for (const key of way) proven.add(key);
    }
  }

  /** The parent of a document that the request does not change, as it is stored; its version is asserted. */
  #storedParent(
    { table, ranges }: WrittenTable,
    { partId, ttlMs = Number.POSITIVE_INFINITY }: GraphDefinition,
    type: string,
    key: string,
    isLive: (target: string, since: number, range: number) => boolean,
  ): string | undefined {
    const at = intervalOf(key, table.ranges);
    const { rangeId, stored } = must(ranges[at], 'intervals cover every key');
    // The version first: what is written after it was read fails the assertion.
    const document = stored.documents.get(key);
    const { timeMs } = this.#request;
    const bound = table.expiredAtOrBeforeMs(timeMs);
    const isThere =
      document && !(bound !== undefined && document.ttlBaseMs !== undefined && document.ttlBaseMs <= bound);
    const version = isThere ? stored.versionOf(document) : 0;
    this.#readSet.set(`${rangeId} ${key}`, { rangeId, key, version, table: table.name });
    if (!isThere) return undefined;
    const { ordinal } = document;
    const body = stored.parts.read([ordinal], [partId]).found.get(ordinal)?.get(partId);
    if (!body) return undefined;
    const sequence = stored.parts.sequences([ordinal], partId).get(ordinal) ?? 0;
    const parent = readEdges(body).find((edge) => {
      const isOf = edge.type === type && edge.createdMs > timeMs - ttlMs;
      return isOf && isLive(edge.target, edge.since || sequence, at);
    });
    return parent?.target;
  }

  #tableOf(rangeId: number): WrittenTable {
    const holds = ({ table }: WrittenTable) => table.ranges.some((range) => range.rangeId === rangeId);
    return must(this.#tables.find(holds), 'a tree of a table that is not written to');
  }
}
