import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { rootedPath } from './rooted-path.ts';

const edgeFormats = ['extraction_relation', 'extraction_graph'] as const;

/** The members of a graph index whose edges are made of an artifact of each document. */
export interface EdgeSourceConfig {
  source: {
    kind: 'artifact';
    /** The enrichment, which makes an asset that is JSON. */
    artifact: string;
    /** Where in the asset the extraction lies; `$` for the whole of it. */
    path: string;
    /** An edge for each relation; `extraction_graph`: and one for each entity. */
    format: (typeof edgeFormats)[number];
  };
  /** `target`: template of the key that an edge leads to. Edges lead from the document whose artifact it is. */
  nodes: { model: 'document'; target: string };
  /** Templates; a weight may be a number, and metadata any JSON whose strings are templates. */
  edge: { type: string; weight?: string | number; metadata?: Readonly<Record<string, unknown>> };
  /** Members of the document that every edge has in its metadata. */
  context?: { doc_fields: readonly string[] };
}

const usualTarget = '{{target.text}}';
const usualType = '{{type}}';
const docFieldsMax = 32;

/**
 * The members that say that edges are made of an artifact; undefined where they
 * come with documents. Throws `invalid_request`.
 */
export function readEdgeSource(
  members: Readonly<Record<string, unknown>>,
  inline?: string,
): EdgeSourceConfig | undefined {
  const { source = inline === undefined ? undefined : { kind: 'artifact' } } = members;
  if (source === undefined || membersOf(source, '"source"').kind === 'document_field') {
    if (source !== undefined) readDocumentField(membersOf(source, '"source"'));
    const stray = ['artifact', 'nodes', 'edge', 'context'].find((member) => members[member] !== undefined);
    if (stray === undefined) return undefined;
    throw refused(`"${stray}" goes with a "source" of the kind "artifact": edges come with documents without one`);
  }
  return {
    source: readArtifactSource(membersOf(source, '"source"'), inline),
    nodes: readNodes(members.nodes ?? {}),
    edge: readEdge(members.edge ?? {}),
    ...(members.context === undefined ? {} : { context: readContext(members.context) }),
  };
}

function readDocumentField(source: Readonly<Record<string, unknown>>): void {
  const { field = '_edges' } = only(source, ['kind', 'field'], '"source"');
  if (field === '_edges') return;
  throw refused('"source.field" can only be "_edges"; for another member of the document give "field" of an edge type');
}

function readArtifactSource(given: Readonly<Record<string, unknown>>, inline?: string): EdgeSourceConfig['source'] {
  const {
    kind,
    artifact = inline,
    path = '$',
    format = edgeFormats[0],
  } = only(given, ['kind', 'artifact', 'path', 'format'], '"source"');
  if (kind !== 'artifact') throw refused('"source.kind" must be "artifact" or "document_field"');
  if (typeof artifact !== 'string' || artifact === '') {
    throw refused('"source.artifact" is missing: the name of the enrichment whose artifacts edges are made of');
  }
  if (inline !== undefined && artifact !== inline) {
    throw refused(`"source.artifact" is "${artifact.slice(0, 64)}", but "artifact" declares "${inline}"`);
  }
  if (typeof path !== 'string') throw refused('"source.path" must be a path such as "$" or "$.result"');
  const known = edgeFormats.find((each) => each === format);
  if (known === undefined) throw refused(`"source.format" must be one of ${edgeFormats.join(', ')}`);
  return { kind, artifact, path: path === '$' ? path : rootedPath(path), format: known };
}

function readNodes(given: unknown): EdgeSourceConfig['nodes'] {
  const {
    model = 'document',
    source,
    target = usualTarget,
  } = only(membersOf(given, '"nodes"'), ['model', 'source', 'target'], '"nodes"');
  if (model !== 'document') throw refused('"nodes.model" can only be "document": edges lead from documents');
  if (source !== undefined) {
    throw refused('"nodes.source" is not taken: an edge leads from the document whose artifact it is made of');
  }
  return { model, target: templateOf(target, '"nodes.target"') };
}

function readEdge(given: unknown): EdgeSourceConfig['edge'] {
  const {
    type = usualType,
    weight,
    metadata,
  } = only(membersOf(given, '"edge"'), ['type', 'weight', 'metadata'], '"edge"');
  if (typeof weight === 'number' && !Number.isFinite(Math.fround(weight))) {
    throw refused('"edge.weight" must be a number that 32 bits can hold, or a template of one');
  }
  return {
    type: templateOf(type, '"edge.type"'),
    ...(weight === undefined
      ? {}
      : { weight: typeof weight === 'number' ? weight : templateOf(weight, '"edge.weight"') }),
    ...(metadata === undefined ? {} : { metadata: readMetadata(metadata) }),
  };
}

function readMetadata(given: unknown): Readonly<Record<string, unknown>> {
  const metadata = membersOf(given, '"edge.metadata"');
  if (JSON.stringify(metadata).length <= limits.templateCharsMax) return metadata;
  throw refused(`"edge.metadata" may have ${limits.templateCharsMax} characters at most`);
}

function readContext(given: unknown): { doc_fields: readonly string[] } {
  const { doc_fields: fields } = only(membersOf(given, '"context"'), ['doc_fields'], '"context"');
  if (!Array.isArray(fields) || fields.length > docFieldsMax || !fields.every((each) => typeof each === 'string')) {
    throw refused(`"context.doc_fields" must be an array of at most ${docFieldsMax} paths of member names`);
  }
  return { doc_fields: fields.map((field: string) => rootedPath(field).slice(2)) };
}

/** Every template of the configuration, to be compiled before the index is created. */
export function templatesOf({ nodes, edge }: EdgeSourceConfig): string[] {
  const strings = (value: unknown): string[] => {
    if (typeof value === 'string') return [value];
    return typeof value === 'object' && value !== null ? Object.values(value).flatMap(strings) : [];
  };
  return [nodes.target, edge.type, ...strings(edge.weight), ...strings(edge.metadata)];
}

function templateOf(value: unknown, what: string): string {
  if (typeof value === 'string' && value.trim() !== '' && value.length <= limits.templateCharsMax) return value;
  throw refused(
    `${what} must be a template of at most ${limits.templateCharsMax} characters, such as "{{target.text}}"`,
  );
}

function only(members: Readonly<Record<string, unknown>>, known: readonly string[], what: string) {
  const stray = Object.keys(members).find((member) => !known.includes(member));
  if (stray === undefined) return members;
  throw refused(`${what} has no member "${stray.slice(0, 64)}".${suggestion(stray, [...known])}`);
}

function membersOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw refused(`${what} must be an object`);
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
