import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import { predictRows } from '../../inference/prediction/predict-rows.ts';
import { predictRequestSchema, predictResponseSchema } from '../../protocol/inference/predict.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { admitted } from './admitted.ts';
import { inferenceBody } from './inference-body.ts';

export function predictRoutes(inference: Inference): Route[] {
  const at = (path: '/ai/v1/predict' | '/ml/v1/predict') =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Run a predictor over rows of features',
      body: inferenceBody(predictRequestSchema, { bytesMax: limits.inferenceBodyBytesMax }),
      models: ({ model }) => [model],
      responses: { 200: { description: 'The predictions', schema: predictResponseSchema } },
      handler: (context) =>
        admitted(inference, 'predict', context, async () => {
          const { model: name, input } = context.body;
          if (input.length > limits.predictorRowsMax) {
            const most = limits.predictorRowsMax;
            throw new ServiceError(
              'limit_exceeded',
              `member "input" has ${input.length} rows; a request may have ${most}`,
            );
          }
          const { model, task, rows } = await predictRows(inference, name, input, context);
          return { value: { model, task, predictions: rows }, items: rows.length, tokens: 0 };
        }),
    });
  return [at('/ai/v1/predict'), at('/ml/v1/predict')];
}
