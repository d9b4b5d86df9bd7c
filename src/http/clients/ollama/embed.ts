import { limits } from '../../../config/limits.ts';
import type { Embeddings } from '../../../inference/embeddings/embed-items.ts';
import type { Inference } from '../../../inference/inference.ts';
import { OwnProvider } from '../../../inference/providers/own-provider.ts';
import { specOfModel } from '../../../model-host/model-spec.ts';
import { ollamaAnswerSchema, ollamaEmbeddingsSchema, ollamaEmbedSchema } from '../../../protocol/clients/ollama.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { admitted, timed } from '../../inference/admitted.ts';
import { readKeepAlive } from '../../inference/generation/chat-request.ts';
import { inferenceBody } from '../../inference/inference-body.ts';
import { checkTexts } from '../../inference/texts-of-request.ts';
import { defineRoute, type Route } from '../../routing/route.ts';
import { plainName } from './model-names.ts';

/** `/api/embed`, and `/api/embeddings`, its older form for one text. */
export function ollamaEmbedRoutes(inference: Inference): Route[] {
  const own = new OwnProvider(inference);
  const bytesMax = limits.inferenceBodyBytesMax;
  const shared = {
    method: 'POST',
    access: { inference: 'read' },
    tag: 'Ollama',
    responses: { 200: { description: 'The vectors', schema: ollamaAnswerSchema } },
  } as const;
  return [
    defineRoute({
      ...shared,
      path: '/api/embed',
      summary: 'Embeds texts',
      body: inferenceBody(ollamaEmbedSchema, { bytesMax }),
      models: ({ model }) => [plainName(model)],
      handler: (context) =>
        timed(inference, context, async () => {
          const { model, input = '', truncate = true, dimensions, keep_alive } = context.body;
          const keepAliveMs = readKeepAlive(keep_alive);
          // A client that only wants the model loaded sends nothing, or a text of nothing.
          const items = typeof input !== 'string' ? input : input === '' ? [] : [input];
          checkTexts(items);
          const startMs = inference.clock.monotonicMs();
          const request = {
            model: plainName(model),
            items,
            dimensions,
            truncate: truncate ? ('end' as const) : undefined,
          };
          const embeddings = items.length === 0 ? undefined : await own.embed(request, context);
          if (items.length === 0 || keepAliveMs !== undefined) await keep(inference, model, keepAliveMs, context);
          return {
            model,
            embeddings: embeddings === undefined ? [] : vectorsOf(embeddings),
            total_duration: Math.round((inference.clock.monotonicMs() - startMs) * 1_000_000),
            load_duration: 0,
            prompt_eval_count: embeddings?.tokens ?? 0,
          };
        }),
    }),
    defineRoute({
      ...shared,
      path: '/api/embeddings',
      summary: 'Embeds one text',
      body: inferenceBody(ollamaEmbeddingsSchema, { bytesMax }),
      models: ({ model }) => [plainName(model)],
      handler: (context) =>
        timed(inference, context, async () => {
          const { model, prompt, keep_alive } = context.body;
          const keepAliveMs = readKeepAlive(keep_alive);
          if (prompt !== '') checkTexts([prompt]);
          const request = { model: plainName(model), items: [prompt], truncate: 'end' as const };
          const [embedding = []] = prompt === '' ? [] : vectorsOf(await own.embed(request, context));
          if (prompt === '' || keepAliveMs !== undefined) await keep(inference, model, keepAliveMs, context);
          return { embedding };
        }),
    }),
  ];
}

/** Has the model loaded, to stay for so long; a time of 0 unloads it. */
async function keep(
  inference: Inference,
  name: string,
  keepAliveMs: number | undefined,
  call: Parameters<typeof admitted>[2],
): Promise<void> {
  await admitted(inference, 'load', call, async () => {
    const model = inference.models.require('embedders', plainName(name));
    const staying = { signal: call.signal, keepAliveMs };
    if (keepAliveMs === 0) inference.pool.unload(model);
    else await inference.pool.use(specOfModel(model, inference.settings), () => Promise.resolve(), staying);
    return { value: undefined, items: 0, tokens: 0 };
  });
}

function vectorsOf({ model, vectors }: Embeddings): number[][] {
  return vectors.map((vector) => {
    if (vector instanceof Float32Array) return Array.from(vector);
    throw new ServiceError('model_not_supported', `the model "${model}" makes sparse vectors; ask /ai/v1/embeddings`);
  });
}
