import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { NativeEdge, NativeGraphAnswer } from '../../engine/native-graph.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { Clock } from '../../lib/clock.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { NodeFilter } from '../../query/request/graph/graph-request.ts';
import type { NodeSelector, ResultReference } from '../../query/request/graph/graph-searches.ts';
import { type Projection, shownDocument } from '../../query/request/projection/projection.ts';
import type { Table } from '../table.ts';
import type { GraphSearchRequest, OpenGraph, PartialReason } from './open-graph.ts';
import { countBody, counted, type TraversalCount } from './traversal-counts.ts';
import { sliceKeys, Visibility } from './visibility.ts';

/** A node of an answer. */
export interface ShownNode {
  key: string;
  depth: number;
  distance: number;
  path?: string[];
  path_edges?: NativeEdge[];
  edges?: NativeEdge[];
  /** The edges of the way that have metadata. */
  evidence?: { path_edges: NativeEdge[] };
  document?: unknown;
}

/** Why an answer lacks something; empty for a whole one. */
export interface Partial {
  partial?: PartialReason;
}

/** The visibility of nodes of an answer. */
export interface Decider {
  visibility: Visibility;
  /** The nodes of an answer that it depends on. */
  met(answer: NativeGraphAnswer): readonly string[];
}

interface Searched {
  readonly answer: NativeGraphAnswer;
  readonly partial: Partial;
}

type ShownDocuments = ReadonlyMap<string, unknown>;

export function shownNode(node: ShownNode, documents: ShownDocuments): ShownNode {
  return documents.has(node.key) ? { ...node, document: documents.get(node.key) } : node;
}

/** Searches go around this often until every node that an answer depends on is decided. */
const roundsMax = 6;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** A graph index that a request searches, with its table's ranges held open, as its caller may see it. */
export class SearchedGraph {
  readonly table: Table;
  readonly ranges: readonly IndexedRange[];
  readonly caller: Caller;
  readonly #graph: OpenGraph;
  readonly #clock: Clock;
  readonly #count: TraversalCount;

  constructor(
    { table, ranges, clock, caller }: { table: Table; ranges: readonly IndexedRange[]; clock: Clock; caller: Caller },
    graph: OpenGraph,
    count: TraversalCount,
  ) {
    this.table = table;
    this.ranges = ranges;
    this.caller = caller;
    this.#graph = graph;
    this.#clock = clock;
    this.#count = count;
  }

  /** Decides which nodes the caller may see, of those that a filter lets through. */
  visibility(filter?: NodeFilter): Visibility {
    const { table, ranges, caller } = this;
    return new Visibility({ table, ranges, clock: this.#clock, caller }, filter);
  }

  /**
   * Searches as if all nodes were shown, decides on those that the search has met, and searches again until nothing that
   * was met is undecided. So a hidden node is neither found nor walked through. `others` decide on nodes for `request`,
   * which is made again for each search.
   */
  search(
    request: () => GraphSearchRequest,
    filter: NodeFilter | undefined,
    others: readonly Decider[] = [],
  ): Promise<Searched> {
    return counted(this.#count, () => this.#search(request, filter, others));
  }

  /** A page of the edges of one node, which is no traversal. */
  edges(request: GraphSearchRequest): Promise<Searched> {
    return this.#search(() => request, undefined, []);
  }

  async #search(
    request: () => GraphSearchRequest,
    filter: NodeFilter | undefined,
    others: readonly Decider[],
  ): Promise<Searched> {
    const { caller } = this;
    const graph = this.#graph;
    const late = (await graph.waitUntilShown(caller.signal)) ?? (graph.isWhole ? undefined : 'damaged');
    let lacks: PartialReason | undefined;
    const partialOf = (answer: NativeGraphAnswer) => {
      const reason = lacks ?? answer.partial ?? late;
      return { answer, partial: reason === undefined ? {} : { partial: reason } };
    };
    const visibility = this.visibility(filter);
    if (!visibility.decides && others.length === 0) return partialOf(await graph.search(request(), caller));
    const { starts = [], targets = [] } = request();
    const ends = [...starts, ...targets];
    await this.#decideEnds(ends, visibility);
    const walked: Decider = { visibility, met: ({ touched = [] }) => touched };
    const deciders = visibility.decides ? [walked, ...others] : others;
    for (let round = 1; round <= 2 * roundsMax; round += 1) {
      const shown = graph.shown();
      const answer = await graph.search(
        { ...request(), nodes_max: limits.graphNodesCheckedMax, reports_nodes: true, hidden: visibility.hidden() },
        caller,
      );
      const open = deciders.flatMap((decider) => {
        const undecided = decider.met(answer).filter((key) => !decider.visibility.isKnown(key));
        return undecided.length === 0 ? [] : [{ decider, undecided }];
      });
      const changed = await visibility.changed(new Set([...ends, ...walked.met(answer)]), shown);
      if (open.length === 0 && changed.length === 0) return partialOf(taken(answer));
      if (round < roundsMax) {
        for (const { decider, undecided } of open) await decider.visibility.decide(undecided);
      } else {
        // Nodes that were not checked are shown to nobody.
        for (const { decider, undecided } of open) decider.visibility.hide(undecided);
        lacks = 'nodes';
      }
      // A node is decided on again only where the index shows what it is decided on by; an index that is behind is
      // waited for once.
      if (changed.length > 0) lacks ??= await graph.waitUntilShown(caller.signal);
      if (lacks === undefined) {
        await visibility.decide(changed.filter((key) => !ends.includes(key)));
        await this.#decideEnds(
          changed.filter((key) => ends.includes(key)),
          visibility,
        );
      } else {
        visibility.hide(changed);
      }
    }
    const message = 'the documents of this graph are being changed; send the request again shortly';
    throw new ServiceError('unavailable', message, { retryAfterMs: 500 });
  }

  /** The ends of a search are named by the caller: a filter of nodes does not concern them. */
  async #decideEnds(ends: readonly string[], visibility: Visibility): Promise<void> {
    const permitted = this.visibility();
    await permitted.decide(ends);
    visibility.showAs(permitted, ends);
    visibility.hide(ends.filter((key) => !permitted.isShown(key)));
  }

  /** The body of the answer, where every node is shown to the caller; otherwise null, and as `OpenGraph.inlineBody`. */
  inlineBody(request: GraphSearchRequest): string | null {
    const body = this.visibility().decides ? null : this.#graph.inlineBody(request);
    if (body !== null && isTraversal(request)) countBody(this.#count, body);
    return body;
  }

  /** The keys of nodes that a search begins or ends at. `found` names the nodes of another search. */
  async selected(
    { from, filter }: NodeSelector,
    found: (ref: ResultReference) => readonly string[],
  ): Promise<string[]> {
    const keys = 'keys' in from ? from.keys : found(from.ref).slice(0, from.limit);
    if (!filter) return keys.slice();
    const visibility = this.visibility(filter);
    await visibility.decide(keys);
    return keys.filter((key) => visibility.isShown(key));
  }

  /** The documents of nodes, by their keys; none where none are asked for. A node may have none, or one that is hidden. */
  async documentsOf(
    nodes: readonly Pick<ShownNode, 'key'>[],
    projection: Projection | undefined,
  ): Promise<ShownDocuments> {
    const shown = new Map<string, unknown>();
    if (!projection) return shown;
    const visibility = this.visibility();
    const keys = [...new Set(nodes.map(({ key }) => key))];
    for (let start = 0; start < keys.length; start += sliceKeys) {
      for (const { key, body, writtenMs } of await visibility.documents(keys.slice(start, start + sliceKeys))) {
        const text = decoder.decode(body);
        shown.set(key, JSON.parse(shownDocument(projection, text, { writtenMs, embeddings: undefined })));
      }
      await yieldToEventLoop();
    }
    return shown;
  }
}

/** Fails with `invalid_query` for what was refused because of an edge that is shown. */
function taken(answer: NativeGraphAnswer): NativeGraphAnswer {
  if (answer.refused === undefined) return answer;
  throw new ServiceError('invalid_query', answer.refused);
}

function isTraversal({ search }: GraphSearchRequest): boolean {
  return typeof search === 'object' && 'traverse' in search;
}
