import type { GenerateInput } from '../../../src/model-host/operations/generate.ts';

/** The likeliest tokens after a prompt of the chain model, whose last word chooses the answer. */
export function generateInput(text: string, changes: Partial<GenerateInput> = {}): GenerateInput {
  return {
    prompt: [{ text: `<|im_start|>user\n${text}`, markup: true }],
    tokensMax: 64,
    stop: [],
    ignoreEos: false,
    sampling: {
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
      frequencyPenalty: 0,
      presencePenalty: 0,
      seed: undefined,
      logitBias: [],
    },
    constraint: undefined,
    topLogprobs: undefined,
    promptCache: undefined,
    cacheType: undefined,
    speculation: undefined,
    stream: false,
    ...changes,
  };
}
