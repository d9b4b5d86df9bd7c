import { Type } from '@sinclair/typebox';

export const predictRequestSchema = Type.Object({
  model: Type.String({ minLength: 1 }),
  input: Type.Array(Type.Array(Type.Number()), { description: 'Rows of features.' }),
});

export const predictResponseSchema = Type.Object({
  model: Type.String(),
  task: Type.Union([Type.Literal('regression'), Type.Literal('classification')]),
  predictions: Type.Array(Type.Array(Type.Number()), {
    description: 'For each row its value or values, or the chances of the classes in the order of the predictor.',
  }),
});
