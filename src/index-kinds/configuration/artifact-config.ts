import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { type ArtifactEnrichment, artifactEnrichment } from '../../protocol/database/artifacts.ts';
import { checkIndexName } from '../../protocol/names.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type ProviderConfig, readProviderConfig } from '../../provider-config/provider-config.ts';
import { type ChunkerConfig, isMembers, readChunkerConfig, readWindows } from './chunker-config.ts';
import { rootedPath } from './rooted-path.ts';

const artifactKinds = ['chunk', 'asset', 'embedding'] as const;
type ArtifactKind = (typeof artifactKinds)[number];

/** A checked enrichment, as the catalog keeps it: with the credentials of its producer. */
export interface ArtifactConfig {
  readonly name: string;
  readonly kind: ArtifactKind;
  readonly field?: string;
  readonly template?: string;
  readonly source_artifact_name?: string;
  readonly expected_dims?: number;
  readonly vector_space?: string;
  readonly chunk_size?: number;
  readonly chunk_overlap?: number;
  readonly chunker_json?: unknown;
  readonly full_text_index: boolean;
  readonly content_type?: string;
  readonly producer_json?: unknown;
  readonly execution?: Partial<Execution>;
}

interface Execution {
  readonly batch_items: number;
  readonly batch_bytes: number;
}

/** An enrichment of a table, with all that it is made by. */
export interface ArtifactDefinition {
  readonly name: string;
  readonly partId: number;
  readonly config: ArtifactConfig;
  /** The enrichment from whose artifacts it is made; undefined where it is made from the document. */
  readonly source: ArtifactDefinition | undefined;
  /** The index that declares it; undefined for one of the table's own. */
  readonly index: string | undefined;
}

/** Members that say nothing beside the kinds that they belong to. */
const onlyOf: Readonly<Record<string, readonly ArtifactKind[]>> = {
  expected_dims: ['embedding'],
  vector_space: ['embedding'],
  chunk_size: ['chunk'],
  chunk_overlap: ['chunk'],
  chunker_json: ['chunk'],
  full_text_index: ['chunk', 'asset'],
  content_type: ['asset'],
  producer_json: ['asset', 'embedding'],
};
const members = Object.keys(artifactEnrichment.properties);
const labelCharsMax = 255;
const contentTypeForm = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;[^\r\n]*)?$/;

/**
 * Checks an enrichment by itself; what it refers to, and its producer, are checked by whoever creates it. Empty texts and
 * zeros stand for what is not given. Throws `invalid_request`, `invalid_name`.
 */
export function readArtifactConfig(name: string, given: ArtifactEnrichment): ArtifactConfig {
  for (const member of Object.keys(given)) {
    if (members.includes(member)) continue;
    throw refused(`an enrichment has no member "${member.slice(0, 64)}".${suggestion(member, members)}`);
  }
  if (given.name !== undefined && given.name !== name) {
    throw refused(`"name" is "${given.name.slice(0, 64)}" but the enrichment is created as "${name}"`);
  }
  checkIndexName(name);
  const kind = artifactKinds.find((known) => known === given.kind);
  if (kind === undefined) throw refused(`"kind" must be one of ${artifactKinds.join(', ')}`);
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => isSaid(value))) as ArtifactEnrichment;
  for (const [member, kinds] of Object.entries(onlyOf)) {
    if (!Object.hasOwn(said, member) || kinds.includes(kind)) continue;
    throw refused(`"${member}" belongs to enrichments of kind ${kinds.join(' or ')}; leave it out`);
  }
  const config: ArtifactConfig = {
    name,
    kind,
    ...readSource(said),
    ...taken(said, ['expected_dims', 'vector_space', 'chunk_size', 'chunk_overlap', 'chunker_json', 'content_type']),
    full_text_index: said.full_text_index ?? false,
    ...taken(said, ['producer_json']),
    ...unusualExecution(kind, said.execution ?? {}),
  };
  if (kind === 'chunk') chunkerOf(config);
  if (kind === 'embedding' && config.producer_json === undefined) {
    const form = '{"type":"embedder","config":{"provider":...,"model":...}}';
    throw refused(`"producer_json" is missing: an embedding needs an embedder, as ${form}`);
  }
  checkTexts(config);
  return config;
}

/** How the texts of an enrichment of kind `chunk` are cut; `chunker_json` wins over windows. */
export function chunkerOf({ chunker_json, chunk_size, chunk_overlap }: ArtifactConfig): ChunkerConfig {
  if (chunker_json === undefined) return readWindows(chunk_size ?? 0, chunk_overlap ?? 0);
  const chunker = typeof chunker_json === 'string' ? parsed(chunker_json, 'chunker_json') : chunker_json;
  if (!isMembers(chunker)) throw refused('"chunker_json" must be an object, or JSON of one');
  return readChunkerConfig(chunker, 'chunker_json');
}

/** The embedder of an enrichment of kind `embedding`. Throws `invalid_request` and `unknown_provider`. */
export function embedderConfigOf({ producer_json: given }: ArtifactConfig): ProviderConfig {
  const form = typeof given === 'string' ? parsed(given, 'producer_json') : given;
  if (!isMembers(form) || form.type !== 'embedder' || !isMembers(form.config)) {
    throw refused('"producer_json" of an embedding must be {"type":"embedder","config":{"provider":...,"model":...}}');
  }
  return readProviderConfig(form.config, 'embed', 'producer_json.config');
}

/** How much is made together at most: texts in one request to a model, or sources of which a producer is asked side by side. */
export function executionOf({ kind, execution }: Pick<ArtifactConfig, 'kind' | 'execution'>): Execution {
  const usualItems = kind === 'asset' ? limits.producerBatchItems : limits.enrichmentBatchItems;
  const { batch_items = usualItems, batch_bytes = limits.enrichmentBatchBytes } = execution ?? {};
  return { batch_items, batch_bytes };
}

/** Only where it is not the usual one: a configuration that is given back as it is shown is still the same. */
function unusualExecution(kind: ArtifactKind, execution: Partial<Execution>): Pick<ArtifactConfig, 'execution'> {
  const usual = executionOf({ kind });
  const { batch_items, batch_bytes } = executionOf({ kind, execution });
  const unusual = {
    ...(batch_items === usual.batch_items ? {} : { batch_items }),
    ...(batch_bytes === usual.batch_bytes ? {} : { batch_bytes }),
  };
  return Object.keys(unusual).length === 0 ? {} : { execution: unusual };
}

/** The configuration as it may be shown: every member of the interface but `producer_json`, which may hold a key. */
export function shownArtifact(artifact: ArtifactConfig): ArtifactEnrichment {
  const { producer_json: _, ...config } = artifact;
  return {
    ...{ field: '', template: '', source_artifact_name: '', expected_dims: 0, vector_space: '' },
    ...{ chunk_size: 0, chunk_overlap: 0, chunker_json: '', content_type: '' },
    ...(config as ArtifactEnrichment),
    chunker_json: textOf(config.chunker_json),
    execution: executionOf(artifact),
  };
}

/** The definitions of a table's enrichments, each behind the one that it is made from. */
export function defineArtifacts(
  records: readonly { partId: number; config: ArtifactConfig; index: string | undefined }[],
): ArtifactDefinition[] {
  const defined = new Map<string, ArtifactDefinition>();
  const byName = new Map(records.map((record) => [record.config.name, record]));
  const define = (name: string): ArtifactDefinition | undefined => {
    const known = defined.get(name);
    const record = byName.get(name);
    if (known || !record) return known;
    const { source_artifact_name: sourceName } = record.config;
    const source = sourceName === undefined ? undefined : define(sourceName);
    const definition = { name, source, ...record };
    defined.set(name, definition);
    return definition;
  };
  for (const name of byName.keys()) define(name);
  return [...defined.values()];
}

function readSource(given: ArtifactEnrichment): Pick<ArtifactConfig, 'field' | 'template' | 'source_artifact_name'> {
  const { field, template, source_artifact_name: source } = given;
  if (source !== undefined) {
    if (template !== undefined) throw refused('give "source_artifact_name" or "template", not both');
    if (field !== undefined) throw refused('give "source_artifact_name" or "field", not both');
    return { source_artifact_name: source };
  }
  if (field === undefined && template === undefined) {
    throw refused('give "field", "template" or "source_artifact_name": what the artifact is made from');
  }
  if (template !== undefined && template.length > limits.templateCharsMax) {
    throw refused(`"template" may have ${limits.templateCharsMax} characters at most`);
  }
  return {
    ...(field === undefined ? {} : { field: rootedPath(field) }),
    ...(template === undefined ? {} : { template }),
  };
}

function checkTexts({ vector_space: space, content_type: type, producer_json, chunker_json }: ArtifactConfig): void {
  if ((space ?? '').length > labelCharsMax) {
    throw refused(`"vector_space" may have ${labelCharsMax} characters at most`);
  }
  if (type !== undefined && (type.length > labelCharsMax || !contentTypeForm.test(type))) {
    throw refused('"content_type" must be a media type, such as "text/plain"');
  }
  for (const [member, value] of Object.entries({ producer_json, chunker_json })) {
    if (JSON.stringify(value ?? '').length <= limits.templateCharsMax) continue;
    throw refused(`"${member}" may have ${limits.templateCharsMax} characters at most`);
  }
}

function taken<Name extends keyof ArtifactEnrichment>(given: ArtifactEnrichment, names: readonly Name[]) {
  const named = names.flatMap((name) => (given[name] === undefined ? [] : [[name, given[name]] as const]));
  return Object.fromEntries(named) as Partial<Pick<ArtifactConfig, Name & keyof ArtifactConfig>>;
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== 0 && value !== false;
}

function textOf(json: unknown): string {
  return json === undefined ? '' : typeof json === 'string' ? json : JSON.stringify(json);
}

function parsed(json: string, member: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw refused(`"${member}" is not JSON`);
  }
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
