import type { GraphDefinition } from '../../index-kinds/graph.ts';
import type { Clock } from '../../lib/clock.ts';
import { edgeStamp } from '../../lib/parts/edge-stamp.ts';
import { type Edge, edgesBody } from '../../lib/parts/edges-part.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { GraphWrites } from '../../storage/write-request.ts';
import type { Source } from '../derive-source.ts';
import type { DocumentRow, FollowedPart } from '../following/followed-part.ts';
import type { HeldPart } from '../following/held-part.ts';
import { type DerivedEdge, deriveEdges, type EdgeRecipe } from './derived-edges.ts';
import { EdgeBatch, type MadeEdges } from './edge-batch.ts';
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
  const maker = { recipe, fingerprint, render, clock };
  return {
    partId,
    source: { field: undefined, template: undefined, artifact: sourcePartId },
    fingerprint,
    graphs: rulesOfMadeEdges(definition),
    batches: () => () => new EdgeBatch((...document) => makeEdges(maker, ...document)),
  };
}

/** The facts for the writer about lists of edges that were checked as they were made. */
export function rulesOfMadeEdges({ name, partId, ttlMs }: GraphDefinition): GraphWrites {
  const rules = { name, partId, ttlMs, maxEdges: 0, fields: [], treeTypes: [] };
  return { indexes: [rules], rangeIds: [], heads: [] };
}

async function makeEdges(
  { recipe, fingerprint, render, clock }: EdgeMaker,
  row: DocumentRow,
  source: Source,
  held: HeldPart | undefined,
): Promise<MadeEdges> {
  if (source.kind === 'none') return { outcome: { kind: 'none' }, bytes: 0 };
  if (source.kind === 'invalid') throw source.error;
  if (source.kind !== 'text') throw notJson();
  const { text } = source;
  const stamp = edgeStamp(row.sequence, `${fingerprint}\0${text}`);
  if (held?.isOf(stamp)) return { outcome: { kind: 'kept' }, bytes: 0 };
  const material = {
    key: decoder.decode(row.key),
    document: parsed(decoder.decode(row.body)),
    artifact: parsed(text),
  };
  const derived = await deriveEdges(recipe, material, render);
  if (derived.length === 0) return { outcome: { kind: 'none' }, bytes: 0 };
  const nowMs = clock.nowMs();
  const edges = derived.map((edge) => listed(edge, row.sequence, nowMs));
  return { outcome: { kind: 'artifact', body: (partId) => edgesBody(partId, edges, stamp) }, bytes: text.length };
}

/** `since`: the sequence of the document that it is made of. */
export function listed(edge: DerivedEdge, since: number, nowMs: number): Edge {
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
