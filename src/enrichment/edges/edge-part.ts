import { limits } from '../../config/limits.ts';
import type { GraphDefinition } from '../../index-kinds/graph.ts';
import type { Clock } from '../../lib/clock.ts';
import { edgeStamp } from '../../lib/parts/edge-stamp.ts';
import { type Edge, edgesBody } from '../../lib/parts/edges-part.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { GraphWrites } from '../../storage/write-request.ts';
import type { Source } from '../derive-source.ts';
import type { Batch, DocumentRow, FollowedPart, HeldPart } from '../following/followed-part.ts';
import type { PartOutcome } from '../following/part-outcome.ts';
import { type DerivedEdge, deriveEdges, type EdgeRecipe } from './derived-edges.ts';
import type { Render } from './expression.ts';

interface EdgeMaker {
  readonly recipe: EdgeRecipe;
  readonly fingerprint: string;
  readonly render: Render;
  readonly clock: Pick<Clock, 'nowMs'>;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The edges of a graph index, as a follower makes them of an artifact; undefined where they come with the documents. They
 * count from the write of their document on: what was deleted after it takes the edge along, also if that is made later.
 */
export function edgePart(
  definition: GraphDefinition,
  { render, clock }: Pick<EdgeMaker, 'render' | 'clock'>,
): FollowedPart | undefined {
  const { partId, sourcePartId, derived, edgeTypes, maxEdges } = definition;
  if (derived === undefined || sourcePartId === undefined) return undefined;
  const recipe = { source: derived, edgeTypes, maxEdges };
  const fingerprint = JSON.stringify([recipe, sourcePartId]);
  return {
    partId,
    source: { field: undefined, template: undefined, artifact: sourcePartId },
    fingerprint,
    graphs: rulesOfMadeEdges(definition),
    batches: () => () => new EdgeBatch({ recipe, fingerprint, render, clock }),
  };
}

/** The facts for the writer about lists of edges that were checked as they were made. */
export function rulesOfMadeEdges({ name, partId, ttlMs }: GraphDefinition): GraphWrites {
  const rules = { name, partId, ttlMs, maxEdges: 0, fields: [], treeTypes: [] };
  return { indexes: [rules], rangeIds: [], heads: [] };
}

/** Lists of edges of documents; nothing is asked of a model. */
class EdgeBatch implements Batch {
  readonly #maker: EdgeMaker;
  readonly #made: { row: DocumentRow; outcome: PartOutcome }[] = [];
  #bytes = 0;

  constructor(maker: EdgeMaker) {
    this.#maker = maker;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.enrichmentBatchBytes;
  }

  /** Of those that have to be worked on by a model. */
  get sourceCount(): number {
    return 0;
  }

  add(row: DocumentRow, source: Source, held: HeldPart | undefined): Promise<void> | undefined {
    const settle = (outcome: PartOutcome) => void this.#made.push({ row, outcome });
    if (source.kind === 'none') return settle({ kind: 'none' });
    if (source.kind === 'invalid') return settle({ kind: 'failed', error: source.error, isFinal: true });
    if (source.kind !== 'text') return settle({ kind: 'failed', error: notJson(), isFinal: true });
    const stamp = edgeStamp(row.sequence, `${this.#maker.fingerprint}\0${source.text}`);
    if (held?.hash && Buffer.compare(held.hash, stamp) === 0) return settle({ kind: 'kept' });
    return this.#outcomeOf(row, source.text, stamp).then(settle);
  }

  async #outcomeOf(row: DocumentRow, text: string, stamp: Uint8Array): Promise<PartOutcome> {
    const { recipe, render, clock } = this.#maker;
    try {
      const material = {
        key: decoder.decode(row.key),
        document: parsed(decoder.decode(row.body)),
        artifact: parsed(text),
      };
      const derived = await deriveEdges(recipe, material, render);
      if (derived.length === 0) return { kind: 'none' };
      const nowMs = clock.nowMs();
      const edges = derived.map((edge) => listed(edge, row.sequence, nowMs));
      this.#bytes += text.length;
      return { kind: 'artifact', body: (partId) => edgesBody(partId, edges, stamp) };
    } catch (error) {
      if (error instanceof ServiceError) return { kind: 'failed', error, isFinal: true };
      throw error;
    }
  }

  run(): Promise<{ row: DocumentRow; outcome: PartOutcome }[]> {
    return Promise.resolve(this.#made);
  }
}

function listed(edge: DerivedEdge, since: number, nowMs: number): Edge {
  return { ...edge, origin: 'derived', createdMs: nowMs, updatedMs: nowMs, since };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

function notJson(): ServiceError {
  return new ServiceError('invalid_edge', 'the artifact is not JSON, so that no edges can be made of it');
}
