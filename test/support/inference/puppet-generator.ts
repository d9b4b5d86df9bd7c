import type { Backend } from '../../../src/model-host/backend.ts';
import { runHostChild } from '../../../src/model-host/child/host-child.ts';
import type { GenerateInput, GenerateResult } from '../../../src/model-host/operations/generate.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

/** A child that does what the prompt says, one request at a time as a model with one sequence does. */
runHostChild(async () => puppet);

let queue: Promise<unknown> = Promise.resolve();

const puppet: Backend = {
  info: { contextTokens: 100, specialTexts: ['<|im_end|>'] },
  handlers: {
    generate(input, { signal, emit }) {
      const aborted = new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      const before = queue;
      const turn = Promise.race([before, aborted]).then(() => play(input, signal, aborted, (text) => emit({ text })));
      queue = before.then(() => turn).catch(() => undefined);
      return turn;
    },
  },
  close: async () => undefined,
};

async function play(
  input: GenerateInput,
  signal: AbortSignal,
  aborted: Promise<void>,
  emit: (text: string) => void,
): Promise<GenerateResult> {
  const prompt = input.prompt.map((piece) => ('text' in piece ? piece.text : '')).join('');
  const told = (word: string) => prompt.includes(word);
  if (told('refuse'))
    throw new ServiceError('context_length_exceeded', 'the prompt has 101 tokens; the model takes 100');
  if (told('wait')) await aborted;
  if (told('drip') || told('break') || told('die')) emit('first');
  if (told('break')) throw new ServiceError('inference_failed', 'the matrix is singular\nand odd');
  if (told('die')) process.kill(process.pid, 'SIGKILL');
  if (told('drip')) await aborted;
  while (told('flood') && !signal.aborted) {
    emit('x'.repeat(20_000));
    await Bun.sleep(1);
  }
  return result(input.stream ? '' : 'done', signal);
}

function result(text: string, signal: AbortSignal): GenerateResult {
  if (signal.aborted) throw new Error('nobody waits');
  return {
    finish: 'stop',
    stopText: undefined,
    text,
    logprobs: undefined,
    promptTokens: 1,
    cachedTokens: 0,
    completionTokens: 1,
    speculation: undefined,
    prefillMs: 0,
    decodeMs: 0,
  };
}
