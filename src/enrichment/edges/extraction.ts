import type { EdgeSourceConfig } from '../../index-kinds/configuration/edge-source.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { memberOf } from '../template/builtins.ts';

/** A relation, or an entity as what the document is related to: names that templates of edges know. */
export interface ExtractedEdge {
  readonly type: string;
  readonly score?: number;
  /** Entity at the beginning of a relation. */
  readonly source?: unknown;
  readonly target: unknown;
}

/**
 * The content of an extraction, in its order: entities where they are asked for, then relations. Without either it says nothing.
 * Throws `invalid_edge` for what is no extraction.
 */
export function* foundIn(asset: unknown, { path, format }: EdgeSourceConfig['source']): Generator<ExtractedEdge> {
  const extraction = path.split('.').slice(1).reduce<unknown>(memberOf, asset);
  if (extraction === undefined || extraction === null) return;
  if (typeof extraction !== 'object' || Array.isArray(extraction)) {
    throw invalid(`the artifact has no extraction at "${path}": an object with "relations" or "entities"`);
  }
  const entities = listOf(extraction, 'entities');
  if (format === 'extraction_graph') {
    for (const entity of entities) yield { type: textOf(entity, 'label'), ...scoreOf(entity), target: entity };
  }
  // Of several entities of one id the first.
  const byId = new Map(entities.map((entity) => [memberOf(entity, 'id'), entity] as const).reverse());
  for (const relation of listOf(extraction, 'relations')) {
    const [source, target] = (['source', 'target'] as const).map((end) => entityOf(relation, end, { entities, byId }));
    const ends = { source, target };
    yield { type: textOf(relation, 'type'), ...scoreOf(relation), ...ends };
  }
}

function listOf(extraction: object, name: string): readonly unknown[] {
  const list = memberOf(extraction, name) ?? [];
  if (Array.isArray(list)) return list;
  throw invalid(`"${name}" of the extraction is not an array`);
}

/** The entity that an end of a relation names by its place or id, or that it is. */
function entityOf(
  relation: unknown,
  end: 'source' | 'target',
  { entities, byId }: { entities: readonly unknown[]; byId: ReadonlyMap<unknown, unknown> },
): unknown {
  const named = memberOf(relation, end);
  if (typeof named === 'string') return { text: named };
  const [at, id] = [memberOf(named, 'entity_index'), memberOf(named, 'id')];
  const found = typeof at === 'number' ? entities[at] : id === undefined ? named : byId.get(id);
  if (typeof found === 'object' && found !== null) return found;
  throw invalid(`a relation of the extraction has a "${end}" that is none of its entities`);
}

function textOf(value: unknown, name: string): string {
  const text = memberOf(value, name);
  if (typeof text === 'string') return text;
  throw invalid(`the extraction has a relation or an entity without its "${name}"`);
}

function scoreOf(value: unknown): { score?: number } {
  const score = memberOf(value, 'score');
  return typeof score === 'number' ? { score } : {};
}

function invalid(message: string): ServiceError {
  return new ServiceError('invalid_edge', message);
}
