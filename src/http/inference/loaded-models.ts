import type { Inference } from '../../inference/inference.ts';
import { specOfModel } from '../../model-host/model-spec.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import { loadModelSchema, modelSchema, unloadModelSchema } from '../../protocol/models/models.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { admitted } from './admitted.ts';
import { readKeepAlive } from './generation/chat-request.ts';
import { inferenceBody } from './inference-body.ts';
import { modelEntry } from './models.ts';

const bytesMax = 64 * 1024;
const tag = 'Inference';

/** Loads a model before its first request, and unloads it before its time. */
export function loadedModelRoutes(inference: Inference): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/models/load',
      access: { inference: 'read' },
      tag,
      summary: 'Load an installed model',
      description: 'It stays for `keep_alive` after its last request, or for the usual time.',
      body: inferenceBody(loadModelSchema, { bytesMax }),
      models: ({ model }) => [model],
      responses: { 200: { description: 'The model, loaded', schema: modelSchema } },
      handler: (context) =>
        admitted(inference, 'load', context, async () => {
          const model = installed(inference, context.body.model);
          const staying = { signal: context.signal, keepAliveMs: readKeepAlive(context.body.keep_alive) };
          await inference.pool.use(specOfModel(model, inference.settings), () => Promise.resolve(), staying);
          return { value: modelEntry(model, inference), items: 0, tokens: 0 };
        }),
    }),
    defineRoute({
      method: 'POST',
      path: '/ai/v1/models/unload',
      access: { inference: 'write' },
      tag,
      summary: 'Unload a model',
      description: 'Requests that it works on are finished first; one that is not loaded stays so.',
      body: inferenceBody(unloadModelSchema, { bytesMax }),
      models: ({ model }) => [model],
      responses: { 200: { description: 'The model', schema: modelSchema } },
      handler: ({ body }) => {
        const model = installed(inference, body.model);
        inference.pool.unload(model);
        return modelEntry(model, inference);
      },
    }),
  ];
}

/** A model of any kind under exactly this name. */
function installed({ registry }: Inference, name: string): InstalledModel {
  registry.rescan();
  const model = registry.findById(name);
  if (model !== undefined) return model;
  throw new ServiceError('model_not_found', `no model named "${name}" is installed; GET /ai/v1/models lists them`);
}
