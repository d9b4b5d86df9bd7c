import { dirname } from 'node:path';
import packageFile from '../../../../package.json' with { type: 'json' };
import { type Caller, seesModel } from '../../../access/principal.ts';
import type { Inference } from '../../../inference/inference.ts';
import type { InstalledModel } from '../../../models/installed-model.ts';
import { removeModel } from '../../../models/remove-model.ts';
import { type OllamaName, ollamaAnswerSchema, ollamaNameSchema } from '../../../protocol/clients/ollama.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { inferenceBody } from '../../inference/inference-body.ts';
import { usableContext } from '../../inference/models.ts';
import { lineStream } from '../../routing/other-content.ts';
import { defineRoute, type Route } from '../../routing/route.ts';
import { namedModel, taggedName } from './model-names.ts';
import { pull } from './pull.ts';

const bytesMax = 64 * 1024;
const tag = 'Ollama';
/** Clients of Ollama show this time as for ever. */
const foreverMs = 100 * 365 * 24 * 3_600_000;
const read = { inference: 'read' } as const;
const write = { inference: 'write' } as const;
const responses = { 200: { description: 'As Ollama documents it', schema: ollamaAnswerSchema } };

/** The routes by which clients of Ollama list, fetch and delete models. */
export function ollamaModelRoutes(inference: Inference): Route[] {
  const body = inferenceBody(ollamaNameSchema, { bytesMax });
  const shared = { tag, responses } as const;
  /** Open to whoever may use some model: of the others it is told nothing. */
  const list = { ...shared, method: 'GET', access: read, models: () => [] } as const;
  const about = { ...shared, body, models: (sent: OllamaName) => [namedModel(sent)] } as const;
  return [
    defineRoute({
      ...list,
      path: '/api/version',
      summary: 'The version of this server',
      handler: () => ({ version: packageFile.version }),
    }),
    defineRoute({
      ...list,
      path: '/api/tags',
      summary: 'The installed generators and embedders that the caller may use',
      handler: ({ caller }) => ({ models: seen(inference, caller).map(entryOf) }),
    }),
    defineRoute({
      ...list,
      path: '/api/ps',
      summary: 'The loaded generators and embedders that the caller may use',
      handler: ({ caller }) => {
        const loaded = new Map(inference.pool.loaded().map((each) => [each.key, each]));
        const models = seen(inference, caller).flatMap((model) => {
          const found = loaded.get(`${model.kind}/${model.name}`);
          if (found === undefined) return [];
          const { modified_at: _, ...entry } = entryOf(model);
          const expiresMs = inference.clock.nowMs() + Math.min(found.staysMs, foreverMs);
          return [
            {
              ...entry,
              size: found.onGpu ? model.bytes : found.residentBytes,
              size_vram: found.onGpu ? model.bytes : 0,
              expires_at: new Date(expiresMs).toISOString(),
              context_length: usableContext(model, inference.settings) ?? 0,
            },
          ];
        });
        return { models };
      },
    }),
    defineRoute({
      ...about,
      method: 'POST',
      path: '/api/show',
      access: read,
      summary: 'One installed model',
      handler: (context) => shown(installed(inference, namedModel(context.body))),
    }),
    defineRoute({
      ...about,
      method: 'POST',
      path: '/api/pull',
      access: write,
      summary: 'Fetches a model of the catalogue',
      responses: { 200: { ...responses[200], also: lineStream } },
      handler: (context) => pull(inference, namedModel(context.body), context.body.stream ?? true, context),
    }),
    defineRoute({
      ...about,
      method: 'DELETE',
      path: '/api/delete',
      access: write,
      summary: 'Deletes an installed model',
      handler: (context) => {
        const { kind, name, directory } = installed(inference, namedModel(context.body));
        // Below the directory of models lie those of the kinds, and in these the names, which may have an owner.
        const modelsDirectory = name.split('/').reduce((path) => dirname(path), dirname(directory));
        removeModel({ modelsDirectory, kind, name });
        inference.registry.rescan();
        inference.pool.unload({ kind, name });
        return {};
      },
    }),
  ];
}

/** Those that clients of Ollama know what to do with. */
function listed({ registry }: Inference): readonly InstalledModel[] {
  registry.rescan();
  return registry.models.filter(({ kind }) => kind === 'generators' || kind === 'embedders');
}

function seen(inference: Inference, caller: Caller): InstalledModel[] {
  return listed(inference).filter(({ name }) => seesModel(caller, name));
}

function installed(inference: Inference, name: string): InstalledModel {
  const model = listed(inference).find((each) => each.name === name);
  if (model !== undefined) return model;
  throw new ServiceError('model_not_found', `model "${name}" not found; GET /api/tags lists what is installed`);
}

function entryOf(model: InstalledModel) {
  const { name, created, bytes } = model;
  return {
    name: taggedName(name),
    model: taggedName(name),
    modified_at: new Date(created * 1_000).toISOString(),
    size: bytes,
    digest: Object.values(model.manifest.digests ?? {})[0] ?? '',
    details: detailsOf(model),
  };
}

function detailsOf({ backend, variant, parameters }: InstalledModel) {
  const family = backend === 'native' ? 'llama' : 'onnx';
  return {
    parent_model: '',
    format: backend === 'native' ? 'gguf' : 'onnx',
    family,
    families: [family],
    parameter_size: shownCount(parameters),
    quantization_level: variant,
  };
}

/** `135M`, `1.2B` */
function shownCount(parameters: number): string {
  if (parameters >= 1e9) return `${(parameters / 1e9).toFixed(1)}B`;
  return parameters >= 1e6 ? `${Math.round(parameters / 1e6)}M` : String(parameters);
}

function shown(model: InstalledModel): object {
  const { manifest, kind, parameters } = model;
  const details = detailsOf(model);
  const known = {
    'general.architecture': details.family,
    'general.parameter_count': parameters,
    ...(manifest.context_length === undefined ? {} : { [`${details.family}.context_length`]: manifest.context_length }),
    ...(manifest.dimension === undefined ? {} : { [`${details.family}.embedding_length`]: manifest.dimension }),
  };
  const { capabilities } = manifest;
  const may = (word: string, capability: string) => (capabilities.includes(word) ? [capability] : []);
  return {
    license: manifest.license ?? '',
    modelfile: '',
    parameters: '',
    template: manifest.chat_template ?? '',
    details,
    model_info: known,
    capabilities:
      kind === 'embedders' ? ['embedding'] : ['completion', ...may('tools', 'tools'), ...may('reasoning', 'thinking')],
    modified_at: new Date(model.created * 1_000).toISOString(),
  };
}
