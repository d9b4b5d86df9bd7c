import { type Caller, seesModel } from '../../access/principal.ts';
import type { Inference } from '../../inference/inference.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import type { InstalledPredictor } from '../../models/installed-predictor.ts';
import { fixedChunker, quantizedName } from '../../models/model-registry.ts';
import { type ModelKind, modelKinds } from '../../protocol/models/model-kinds.ts';
import {
  type CatalogueEntry,
  type Model,
  modelListSchema,
  modelSchema,
  type Predictor,
  predictorListSchema,
} from '../../protocol/models/models.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const tag = 'Inference';
/** Kinds that clients of the OpenAI interface know what to do with. */
const listedKinds: readonly ModelKind[] = ['generators', 'embedders'];

export function modelRoutes(source: Inference): Route[] {
  const one = (path: '/ai/v1/models/:model' | '/ai/v1/models/:model/:name') =>
    defineRoute({
      method: 'GET',
      path,
      access: { inference: 'read' },
      tag,
      models: () => [],
      summary: 'One installed model, of any kind',
      description: 'A name with an owner is given as `owner%2Fname` or as `owner/name`.',
      responses: { 200: { description: 'The model', schema: modelSchema } },
      handler({ params, caller }) {
        const name = 'name' in params ? `${params.model}/${params.name}` : params.model;
        return findModel(source, name, caller);
      },
    });
  const predictors = (path: '/ai/v1/predictors' | '/ml/v1/predictors' | '/ml/v1/models') =>
    defineRoute({
      method: 'GET',
      path,
      access: { inference: 'read' },
      models: () => [],
      tag,
      summary: 'The installed predictors that the caller may use',
      responses: { 200: { description: 'The predictors by name', schema: predictorListSchema } },
      handler({ caller }) {
        const seen = source.registry.predictors.filter(({ name }) => seesModel(caller, name));
        return { object: 'list', predictors: byName(seen, predictorEntry) };
      },
    });
  return [
    defineRoute({
      method: 'GET',
      path: '/ai/v1/models',
      access: { inference: 'read' },
      models: () => [],
      tag,
      summary: 'The installed models that the caller may use, by kind',
      responses: { 200: { description: 'The models', schema: modelListSchema } },
      handler: ({ caller }) => listModels(source, caller),
    }),
    one('/ai/v1/models/:model'),
    one('/ai/v1/models/:model/:name'),
    predictors('/ai/v1/predictors'),
    predictors('/ml/v1/predictors'),
    predictors('/ml/v1/models'),
  ];
}

function listModels(inference: Inference, caller: Caller): object {
  const { registry, backends, allowDownloads } = inference;
  registry.rescan();
  const models = registry.models.filter(({ name }) => seesModel(caller, name));
  const kinds = modelKinds.map((kind) => {
    const entries = byName(
      models.filter((model) => model.kind === kind),
      catalogueEntry,
    );
    if (kind === 'embedders') return [kind, { ...quantizedEmbedders(models), ...entries }] as const;
    const hasFixed = kind === 'chunkers' && seesModel(caller, fixedChunker);
    return [kind, hasFixed ? { [fixedChunker]: fixedEntry, ...entries } : entries] as const;
  });
  const listed = listedKinds.flatMap((kind) => models.filter((model) => model.kind === kind));
  const data = new Map(listed.toReversed().map((model) => [model.name, modelEntry(model, inference)]));
  return {
    object: 'list',
    data: [...data.values()].reverse(),
    allow_downloads: allowDownloads,
    backends,
    ...Object.fromEntries(kinds),
    // Extractors and generators classify texts and find entities here.
    classifiers: {},
    recognizers: {},
  };
}

/** Embedders whose weights lie in eight bits beside full ones, under the names of the former. */
function quantizedEmbedders(models: readonly InstalledModel[]): Record<string, CatalogueEntry> {
  const embedders = models.filter(({ kind }) => kind === 'embedders');
  return Object.fromEntries(
    embedders.flatMap((model) => {
      const name = quantizedName(model);
      return name === undefined ? [] : [[name, catalogueEntry(model)]];
    }),
  );
}

function findModel(inference: Inference, name: string, caller: Caller): Model {
  const { registry } = inference;
  const isSeen = seesModel(caller, name);
  registry.rescan();
  if (isSeen && name === fixedChunker) return fixedModel;
  const model = isSeen ? registry.findById(name) : undefined;
  if (model !== undefined) return modelEntry(model, inference);
  const refused = registry.refused.find((each) => each.name === name && each.kind !== 'predictors');
  if (refused === undefined || !isSeen) {
    throw new ServiceError('model_not_found', `no model named "${name}" is installed; GET /ai/v1/models lists them`);
  }
  throw new ServiceError('model_load_failed', `the model "${name}" cannot be served: ${refused.reason}`);
}

const fixedEntry: CatalogueEntry = { capabilities: [], inputs: ['text'], backend: 'built_in' };

const fixedModel: Model = {
  id: fixedChunker,
  object: 'model',
  created: 0,
  owned_by: 'sundew',
  type: 'chunkers',
  capabilities: [],
  modalities: ['text'],
  context_source: 'unknown',
  max_model_len: null,
  architecture: { input_modalities: ['text'], output_modalities: ['text'] },
  loaded: true,
};

/** Output modalities of a kind, in the words of routers of models. */
const outputs: Readonly<Record<ModelKind, string[]>> = {
  chunkers: ['text'],
  rerankers: ['rerank'],
  embedders: ['embeddings'],
  extractors: ['text'],
  generators: ['text'],
  rewriters: ['text'],
  readers: ['text'],
  transcribers: ['transcription'],
};

/**
 * Tokens of one request, or `null` where that is not known: a generator is given
 * no longer context than the configuration allows.
 */
export function usableContext({ kind, manifest }: InstalledModel, settings: Inference['settings']): number | null {
  const { context_length } = manifest;
  if (kind !== 'generators') return context_length ?? null;
  return Math.min(context_length ?? settings.contextTokensMax, settings.contextTokensMax);
}

/** The entry of an installed model, beside whether it is loaded now. */
export function modelEntry(model: InstalledModel, { pool, settings }: Pick<Inference, 'pool' | 'settings'>): Model {
  const { name, kind, created, manifest, contextSource } = model;
  const owner = name.includes('/') ? name.slice(0, name.indexOf('/')) : 'local';
  return {
    id: name,
    object: 'model',
    created,
    owned_by: manifest.owned_by ?? owner,
    type: kind,
    capabilities: manifest.capabilities,
    modalities: manifest.inputs,
    ...(manifest.context_length === undefined ? {} : { context_length: manifest.context_length }),
    context_source: contextSource,
    max_model_len: usableContext(model, settings),
    architecture: { input_modalities: manifest.inputs, output_modalities: outputs[kind] },
    ...(manifest.dimension === undefined ? {} : { dimensions: manifest.dimension }),
    loaded: pool.isLoaded(model),
  };
}

function catalogueEntry({ manifest, backend, variant, parameters, bytes }: InstalledModel): CatalogueEntry {
  const { context_length, dimension, pooling, license, description } = manifest;
  return {
    capabilities: manifest.capabilities,
    inputs: manifest.inputs,
    backend,
    variant,
    variants: Object.keys(manifest.variants),
    ...(context_length === undefined ? {} : { context_length }),
    ...(dimension === undefined ? {} : { dimensions: dimension }),
    ...(pooling === undefined ? {} : { pooling }),
    parameters,
    bytes,
    ...(license === undefined ? {} : { license }),
    ...(description === undefined ? {} : { description }),
  };
}

function predictorEntry({ task, features, outputs, classes }: InstalledPredictor): Predictor {
  return { task, format: 'onnx', features, outputs, ...(classes === undefined ? {} : { classes: [...classes] }) };
}

function byName<T extends { readonly name: string }, Entry>(all: readonly T[], entry: (each: T) => Entry) {
  return Object.fromEntries(all.map((each) => [each.name, entry(each)]));
}
