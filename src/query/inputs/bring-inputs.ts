import type { Caller } from '../../access/principal.ts';
import { onlyImage } from '../../enrichment/media/only-image.ts';
import type { TemplateMedia, TemplateMedium } from '../../enrichment/media/template-media.ts';
import type { Templates } from '../../enrichment/template/templates.ts';
import { isVectorIndex, type VectorIndexDefinition } from '../../index-kinds/all-kinds.ts';
import { faultOf } from '../../inference/providers/client/fault.ts';
import { assert, must } from '../../lib/assert.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import type { CursorScope, CursorSeal } from '../execution/page-cursor.ts';
import type { NativePlan, PlanLeg } from '../plan/native-plan.ts';
import type { PlannedQuery } from '../plan/query-plan.ts';
import { requireModelsOf } from '../request/model-access.ts';
import { bytesOfEmbedding } from '../request/query-vector.ts';
import type { SemanticSearch } from '../request/vector-search.ts';
import type { SearchableTable } from '../searchable-table.ts';
import type { QueryEmbeddings, QuerySource, QueryVector } from './query-embeddings.ts';

export interface InputSources {
  cursors: CursorSeal;
  /** Undefined where the database was opened without models. */
  embeddings: QueryEmbeddings | undefined;
  templates: Templates;
  /** Reads what templates name; undefined where media are not taken. */
  media?: Pick<TemplateMedia, 'resolve' | 'newBudget'> | undefined;
}

/** For whom inputs are brought. */
interface InputScope {
  table: SearchableTable;
  cursor: CursorScope;
  caller: Caller;
  /** Aborted when nobody waits any more, or the time of the query is over. */
  signal(): AbortSignal;
}

/** A plan with all that the engine needs. */
export interface WholeSearch {
  plan: NativePlan;
  /** Query vectors of the plan's legs, one after another. */
  vectors: Uint8Array;
  /** Why the words were searched alone, where the text could not be embedded and the request takes that. */
  failedOver: ServiceError | undefined;
  /** False: a graph leg lacks some of its nodes. */
  isWhole?: boolean;
}

/** Brings what a plan wants and planning cannot know: the place that a cursor seals, and the vectors of a text. */
export async function bringInputs(
  planned: PlannedQuery,
  sources: InputSources,
  scope: InputScope,
): Promise<WholeSearch> {
  const { inputs, vectors } = planned;
  const plan: NativePlan = { ...planned.plan };
  if (inputs.cursor) plan.cursor = sources.cursors.open(scope.cursor, inputs.cursor);
  const { semantic } = inputs;
  if (!semantic) return { plan, vectors, failedOver: undefined };
  try {
    return { ...(await withText(plan, vectors, semantic, sources, scope)), failedOver: undefined };
  } catch (error) {
    const isOver = scope.signal().aborted || plan.fusion?.strategy !== 'failover' || plan.query === undefined;
    if (isOver || !(error instanceof ServiceError)) throw error;
    return { plan: withoutText(plan, semantic), vectors, failedOver: error };
  }
}

/** The vectors of all legs, those of the text made now: once for each embedder, all of them side by side. */
async function withText(
  plan: NativePlan,
  given: Uint8Array,
  { text: asked, template, indexes }: SemanticSearch,
  { embeddings, ...templates }: InputSources,
  scope: InputScope,
): Promise<{ plan: NativePlan; vectors: Uint8Array }> {
  if (!embeddings) {
    throw new ServiceError(
      'not_implemented',
      '"semantic_search" needs models, and the database was opened without any',
    );
  }
  const legs = plan.legs ?? [];
  const embedders = () =>
    legs.flatMap(({ name }) => (indexes.has(name) ? [embedderOf(name, scope.table).embedder] : []));
  const text = template === undefined ? asked : await renderQuery(template, asked, templates, { ...scope, embedders });
  let at = 0;
  const ofLeg = async (leg: PlanLeg): Promise<Uint8Array> => {
    if (indexes.has(leg.name)) return embedFor(leg.name, text, embeddings, scope);
    at += leg.bytes;
    return given.subarray(at - leg.bytes, at);
  };
  const vectors = await Promise.all(legs.map(ofLeg));
  return {
    plan: { ...plan, legs: legs.map((leg, index) => ({ ...leg, bytes: vectors[index]?.byteLength ?? 0 })) },
    vectors: Buffer.concat(vectors),
  };
}

/** `{{this}}` and `{{query}}` stand for the text. Media are fetched for those who may use the models that read them. */
async function renderQuery(
  template: string,
  text: string,
  { templates, media }: Pick<InputSources, 'templates' | 'media'>,
  { caller, signal, embedders }: InputScope & { embedders(): readonly ProviderConfig[] },
): Promise<QuerySource> {
  const parts = templates.render(template, text, { query: text });
  const texts = parts.filter((part) => typeof part === 'string');
  let content: string | TemplateMedium = texts.join('');
  if (texts.length < parts.length) {
    requireModelsOf(caller, embedders());
    if (!media) throw new ServiceError('invalid_media', 'this database was opened without a reader of media');
    content = onlyImage(await media.resolve(parts, { signal: signal() }), 'embedding_template');
  }
  if (typeof content !== 'string') {
    return { where: 'embedding_template', mediaType: content.mediaType, from: { base64: content.base64 } };
  }
  if (content.trim() !== '') return content;
  throw new ServiceError('invalid_query', 'embedding_template: nothing is left of the text to search for');
}

async function embedFor(
  name: string,
  text: QuerySource,
  embeddings: QueryEmbeddings,
  scope: InputScope,
): Promise<Uint8Array> {
  const { definition, embedder } = embedderOf(name, scope.table);
  const signal = scope.signal();
  try {
    const vector = await embeddings.embed(embedder, text, scope.caller.requestId, signal);
    assert(isVectorIndex(definition), 'a text for an index without vectors');
    return fitting(vector, definition);
  } catch (error) {
    throw signal.aborted ? error : embeddingFailure(error, name);
  }
}

function embedderOf(name: string, { indexes }: SearchableTable) {
  const { definition, embedder } = must(
    indexes.find((index) => index.name === name),
    'a leg for an index of the table',
  );
  return { definition, embedder: must(embedder, 'a text for an index with an embedder') };
}

function fitting(vector: QueryVector, index: VectorIndexDefinition): Uint8Array {
  try {
    return bytesOfEmbedding(vector, index, 'the embedder');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError('upstream_refused', error.message, { cause: error });
  }
}

/** A fault of the text is the request's; one of the provider passes, or has to be repaired by who made the index. */
function embeddingFailure(error: unknown, index: string): unknown {
  if (!(error instanceof ServiceError)) return error;
  const message = `semantic_search: index "${index}": ${error.message}`;
  if (faultOf(error) === 'item') return new ServiceError(error.code, message, { cause: error });
  if (!error.retryable) return new ServiceError('upstream_refused', message, { cause: error });
  const retry = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
  return new ServiceError('query_embedding_temporarily_unavailable', message, { cause: error, ...retry });
}

/** The plan without its searches by the text, for which the words stand in beside what else is searched. */
function withoutText({ fusion, ...plan }: NativePlan, { indexes }: SemanticSearch): NativePlan {
  const legs = (plan.legs ?? []).filter(({ name }) => !indexes.has(name));
  // Words have no distance.
  if (!legs.some(({ kind }) => kind === 'dense')) {
    delete plan.distance_under;
    delete plan.distance_over;
  }
  if (fusion === undefined) return { ...plan, legs };
  return { ...plan, legs, fusion: legs.length === 0 ? fusion : { ...fusion, strategy: 'rrf' } };
}
