import { limits } from '../../config/limits.ts';
import type { EdgeSourceConfig } from '../../index-kinds/configuration/edge-source.ts';
import type { EdgeTypeConfig } from '../../index-kinds/graph.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { memberAt } from '../../lib/document-path.ts';
import { edgesMax } from '../../lib/parts/edges-part.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { evaluated, type Render } from './expression.ts';
import { type ExtractedEdge, foundIn } from './extraction.ts';

/** An edge that follows from an artifact. */
export interface DerivedEdge {
  readonly type: string;
  readonly target: string;
  readonly weight: number;
  /** A JSON object; '' for none. */
  readonly metadata: string;
}

/** The producer of edges. */
export interface EdgeRecipe {
  readonly source: EdgeSourceConfig;
  /** Types that become edges, with what they are held to; empty for any. */
  readonly edgeTypes: readonly EdgeTypeConfig[];
  /** Edges of a document; 0 for no bound. */
  readonly maxEdges: number;
}

/** The source of the edges. */
interface EdgeMaterial {
  readonly key: string;
  readonly document: unknown;
  /** The value of the asset. */
  readonly artifact: unknown;
}

const metadataBytesMax = 64 * 1024;
/** Edges that are made before others get a turn. */
const turnEdges = 128;
const anyType = { min_weight: 0, max_weight: undefined, allow_self_loops: true, required_metadata: [] };

/**
 * The edges of a document, each type and target once: of several the heaviest. A relation of a type that the index does not
 * have, or whose key is empty, makes none. Throws `invalid_edge` and `too_many_edges` for what cannot be an edge, and
 * what rendering throws.
 */
export async function deriveEdges(
  recipe: EdgeRecipe,
  { key, document, artifact }: EdgeMaterial,
  render: Render,
): Promise<DerivedEdge[]> {
  const edges = new Map<string, DerivedEdge>();
  let seen = 0;
  for (const found of foundIn(artifact, recipe.source.source)) {
    seen += 1;
    if (seen % turnEdges === 0) await yieldToEventLoop();
    const edge = edgeOf(recipe, found, { key, document }, render);
    if (!edge) continue;
    const name = `${edge.type}\0${edge.target}`;
    const other = edges.get(name);
    if (!other || other.weight < edge.weight) edges.set(name, edge);
  }
  const most = recipe.maxEdges || edgesMax;
  if (edges.size <= most) return [...edges.values()];
  throw new ServiceError(
    'too_many_edges',
    `the artifact makes ${edges.size} edges; the index takes ${most} of a document`,
  );
}

function edgeOf(
  { source: { nodes, edge, context }, edgeTypes }: EdgeRecipe,
  found: ExtractedEdge,
  { key, document }: Omit<EdgeMaterial, 'artifact'>,
  render: Render,
): DerivedEdge | undefined {
  const named = { ...found, key, document };
  const textOf = (template: string) => String(evaluated(template, named, render) ?? '').trim();
  const type = textOf(edge.type);
  const rules = edgeTypes.length === 0 ? anyType : edgeTypes.find(({ name }) => name === type);
  if (!rules || type === '') return undefined;
  const target = textOf(nodes.target);
  if (target === '') return undefined;
  const weight = weightOf(edge.weight === undefined ? (found.score ?? 1) : evaluated(edge.weight, named, render));
  const metadata = { ...fieldsOf(document, context?.doc_fields), ...metadataOf(edge.metadata, named, render) };
  const made: DerivedEdge = {
    type,
    target,
    weight,
    metadata: Object.keys(metadata).length === 0 ? '' : JSON.stringify(metadata),
  };
  checkEdge(made, key, metadata, rules);
  return made;
}

function weightOf(value: unknown): number {
  const weight = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof weight === 'number' && Number.isFinite(Math.fround(weight))) return Math.fround(weight);
  throw invalidEdge(`a weight must be a number that 32 bits can hold, not ${JSON.stringify(value)?.slice(0, 64)}`);
}

function metadataOf(metadata: EdgeSourceConfig['edge']['metadata'], named: object, render: Render): object {
  return metadata === undefined ? {} : (evaluated(metadata, named, render) as object);
}

/** Members of the document that are there, under their paths. */
function fieldsOf(document: unknown, paths: readonly string[] = []): Record<string, unknown> {
  const found = paths.map((path) => [path, memberAt(document, path.split('.'))] as const);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

type TypeRules = Pick<EdgeTypeConfig, 'min_weight' | 'allow_self_loops' | 'required_metadata'> & {
  readonly max_weight?: number | undefined;
};

export function checkEdge(
  { type, target, weight, metadata }: DerivedEdge,
  key: string,
  members: Readonly<Record<string, unknown>>,
  {
    min_weight: least,
    max_weight: most = Number.POSITIVE_INFINITY,
    allow_self_loops: loops,
    required_metadata,
  }: TypeRules,
): void {
  const edge = `the edge ${JSON.stringify(type.slice(0, 64))} to ${JSON.stringify(target.slice(0, 64))}`;
  if (Buffer.byteLength(type) > limits.edgeTypeBytesMax) {
    throw invalidEdge(`a type of edges has at most ${limits.edgeTypeBytesMax} bytes`);
  }
  try {
    checkDocumentKey(target);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw invalidEdge(`${edge} leads to no key: ${error.message}`);
  }
  if (weight < least || weight > most) {
    throw invalidEdge(`${edge} has the weight ${weight}, which is out of the bounds of its type`);
  }
  if (!loops && target === key) throw invalidEdge(`${edge} leads to its own document, which its type does not allow`);
  const missing = required_metadata.find((name) => (members[name] ?? null) === null);
  if (missing !== undefined) throw invalidEdge(`${edge} has no "${missing}" in its metadata, which its type requires`);
  if (Buffer.byteLength(metadata) <= metadataBytesMax) return;
  throw invalidEdge(`${edge} has more than ${metadataBytesMax} bytes of metadata`);
}

export function invalidEdge(message: string): ServiceError {
  return new ServiceError('invalid_edge', message);
}
