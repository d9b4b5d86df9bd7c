import type { EdgeTypeConfig, GraphDefinition } from '../../index-kinds/graph.ts';
import type { Clock } from '../../lib/clock.ts';
import { keysAt } from '../../lib/document-path.ts';
import { compareEdges, type Edge, edgesBody, edgesMax } from '../../lib/parts/edges-part.ts';
import type { ServiceError } from '../../protocol/service-error.ts';
import type { DocumentRow, FollowedPart } from '../following/followed-part.ts';
import type { HeldPart } from '../following/held-part.ts';
import { checkEdge, invalidEdge } from './derived-edges.ts';
import { EdgeBatch, type MadeEdges } from './edge-batch.ts';
import { listed, rulesOfMadeEdges } from './edge-part.ts';

interface FieldEdges {
  readonly edgeTypes: readonly EdgeTypeConfig[];
  /** Edges of a document. */
  readonly most: number;
  readonly clock: Pick<Clock, 'nowMs'>;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The edges that follow members of documents which were there before their graph index; later documents come with theirs.
 * Undefined where no edges follow members.
 */
export function fieldEdgePart(definition: GraphDefinition, clock: Pick<Clock, 'nowMs'>): FollowedPart | undefined {
  const edgeTypes = definition.edgeTypes.filter(({ field }) => field !== undefined);
  if (edgeTypes.length === 0) return undefined;
  const { partId, maxEdges } = definition;
  const fields = { edgeTypes, most: maxEdges || edgesMax, clock };
  return {
    partId,
    source: { field: edgeTypes[0]?.field, template: undefined },
    fingerprint: JSON.stringify(edgeTypes),
    graphs: rulesOfMadeEdges(definition),
    ofOlderDocuments: true,
    batches: () => () => new EdgeBatch((row, _, held) => makeEdges(fields, row, held)),
  };
}

/** A document with a list was written since the index is there, or has been here before. */
function makeEdges(fields: FieldEdges, row: DocumentRow, held: HeldPart | undefined): MadeEdges {
  const bytes = row.body.byteLength;
  if (held) return { outcome: { kind: 'kept' }, bytes };
  const edges = edgesOf(row, fields);
  if (edges.length === 0) return { outcome: { kind: 'none' }, bytes };
  return { outcome: { kind: 'artifact', body: (partId) => edgesBody(partId, edges), keepsDeclared: true }, bytes };
}

/** Sorted, each once. Fails with `invalid_edge`, as a write of the document would. */
function edgesOf({ key, body, sequence }: DocumentRow, { edgeTypes, most, clock }: FieldEdges): Edge[] {
  const document: unknown = JSON.parse(decoder.decode(body));
  const nowMs = clock.nowMs();
  const edges = new Map<string, Edge>();
  for (const rules of edgeTypes) {
    for (const target of targetsIn(document, rules)) {
      if (rules.topology === 'tree') throw unproven(rules);
      const edge = { type: rules.name, target, weight: 1, metadata: '' };
      checkEdge(edge, decoder.decode(key), {}, rules);
      edges.set(`${edge.type}\0${target}`, listed(edge, sequence, nowMs));
    }
  }
  if (edges.size > most) throw invalidEdge(`the document would have ${edges.size} edges; the index takes ${most}`);
  return [...edges.values()].sort(compareEdges);
}

function unproven({ name }: EdgeTypeConfig): ServiceError {
  return invalidEdge(
    `the type "${name}" is a tree, which is proven when a document is written: write the document once more`,
  );
}

function targetsIn(document: unknown, { field = '' }: EdgeTypeConfig): string[] {
  const targets = keysAt(document, field);
  if (targets) return targets;
  throw invalidEdge(`the field "${field}" must hold a key or an array of keys`);
}
