import { limits } from '../../config/limits.ts';
import type { EdgeTypeConfig, GraphDefinition } from '../../index-kinds/graph.ts';
import type { Clock } from '../../lib/clock.ts';
import { memberAt } from '../../lib/document-path.ts';
import { compareEdges, type Edge, edgesBody, edgesMax } from '../../lib/parts/edges-part.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Source } from '../derive-source.ts';
import type { Batch, DocumentRow, FollowedPart, HeldPart } from '../following/followed-part.ts';
import type { PartOutcome } from '../following/part-outcome.ts';
import { checkEdge, invalidEdge } from './derived-edges.ts';
import { rulesOfMadeEdges } from './edge-part.ts';

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
  return {
    partId,
    source: { field: edgeTypes[0]?.field, template: undefined },
    fingerprint: JSON.stringify(edgeTypes),
    graphs: rulesOfMadeEdges(definition),
    ofOlderDocuments: true,
    batches: () => () => new FieldEdgeBatch({ edgeTypes, most: maxEdges || edgesMax, clock }),
  };
}

class FieldEdgeBatch implements Batch {
  readonly #edges: FieldEdges;
  readonly #made: { row: DocumentRow; outcome: PartOutcome }[] = [];
  #bytes = 0;

  constructor(edges: FieldEdges) {
    this.#edges = edges;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.enrichmentBatchBytes;
  }

  /** Of those that have to be worked on by a model. */
  get sourceCount(): number {
    return 0;
  }

  /** A document with a list was written since the index is there, or has been here before. */
  add(row: DocumentRow, _: Source, held: HeldPart | undefined): undefined {
    this.#bytes += row.body.byteLength;
    this.#made.push({ row, outcome: held ? { kind: 'kept' } : this.#outcomeOf(row) });
  }

  #outcomeOf(row: DocumentRow): PartOutcome {
    try {
      const edges = edgesOf(row, this.#edges);
      if (edges.length === 0) return { kind: 'none' };
      return { kind: 'artifact', body: (partId) => edgesBody(partId, edges), keepsDeclared: true };
    } catch (error) {
      if (error instanceof ServiceError) return { kind: 'failed', error, isFinal: true };
      throw error;
    }
  }

  run(): Promise<{ row: DocumentRow; outcome: PartOutcome }[]> {
    return Promise.resolve(this.#made);
  }
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
      const times = { createdMs: nowMs, updatedMs: nowMs, since: sequence };
      edges.set(`${edge.type}\0${target}`, { ...edge, origin: 'derived', ...times });
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
  const value = memberAt(document, field.split('.')) ?? [];
  const targets = Array.isArray(value) ? value : [value];
  if (!targets.every((target) => typeof target === 'string')) {
    throw invalidEdge(`the field "${field}" must hold a key or an array of keys`);
  }
  return targets.filter((target) => target !== '');
}
