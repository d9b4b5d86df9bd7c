import { type Static, Type } from '@sinclair/typebox';
import { generateResponseSchema } from './generate.ts';

export const generateBatchRequestSchema = Type.Object({
  mode: Type.Optional(
    Type.Union([Type.Literal('sync'), Type.Literal('async')], { description: '`async` is reserved and refused.' }),
  ),
  requests: Type.Array(
    Type.Object({
      custom_id: Type.String({ minLength: 1, maxLength: 512, description: 'Unique in the batch.' }),
      body: Type.Unknown({ description: 'A request of `/ai/v1/generate` that is not streamed.' }),
    }),
    { minItems: 1, maxItems: 256 },
  ),
});

const itemErrorSchema = Type.Object({
  code: Type.String(),
  message: Type.String(),
  retryable: Type.Boolean(),
  retry_after_ms: Type.Integer(),
});

export const batchExecutionSchema = Type.Object({
  requested_items: Type.Integer({ description: 'The sum of `native_items`, `serial_items` and `rejected_items`.' }),
  native_batches: Type.Integer({ description: 'Times that items were started together.' }),
  native_items: Type.Integer({ description: 'Items that were decoded together.' }),
  serial_items: Type.Integer({ description: 'Items that ran by themselves.' }),
  rejected_items: Type.Integer({
    description: 'Items of which no model has decoded anything, since they could not be asked for.',
  }),
  fallback_items: Type.Integer({ description: 'Of the serial items, those that were to be decoded together.' }),
  fallback_reason: Type.Union([Type.String(), Type.Null()]),
});

export const generateBatchResponseSchema = Type.Object({
  object: Type.Literal('generate.batch'),
  data: Type.Array(
    Type.Object({
      custom_id: Type.String(),
      index: Type.Integer(),
      response: Type.Optional(generateResponseSchema),
      error: Type.Optional(itemErrorSchema),
    }),
  ),
  summary: Type.Object({ total: Type.Integer(), succeeded: Type.Integer(), failed: Type.Integer() }),
  execution: batchExecutionSchema,
});

export type GenerateBatchBody = Static<typeof generateBatchRequestSchema>;
export type GenerateBatchResponse = Static<typeof generateBatchResponseSchema>;
export type BatchExecution = Static<typeof batchExecutionSchema>;
