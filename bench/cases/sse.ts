import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { ChatService, type ChatTurn } from '../processes/chat-service.ts';
import { modelsDirectory, pulledModel } from '../processes/pulled-model.ts';

const fixtures = join(import.meta.dir, '..', '..', 'test', 'fixtures', 'models');
const generator = 'smollm2-135m-instruct';
const peer = 'the same pieces in process';
const sizes = {
  smoke: { tokens: 48, fastTokens: 1_000 },
  full: { tokens: 256, fastTokens: 3_000 },
  scale: { tokens: 512, fastTokens: 3_000 },
} as const;

export const sse: BenchCase = {
  name: 'sse',
  summary: 'a streamed answer over HTTP beside the same answer consumed in the process of the server',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  return [...(await fast(context)), ...(await real(context))];
}

function request(model: string, content: string, tokens: number): object {
  const messages = [{ role: 'user', content }];
  return { model, messages, max_tokens: tokens, ignore_eos: true, temperature: 0 };
}

/** A model that takes no time: what is left is the cost of events. */
async function fast({ placement, pairs, tier }: BenchContext): Promise<Comparison[]> {
  await using service = await ChatService.start(placement, fixtures);
  const asked = request('chain', 'forever', sizes[tier].fastTokens);
  const sides = { http: () => service.overHttp(asked), inside: () => service.inProcess(asked) };
  await alternate(sides, 1);
  const { http, inside } = await alternate(sides, pairs);
  const cpu = (turns: readonly ChatTurn[]) => turns.map(({ cpuUs, tokens }) => cpuUs / tokens);
  const [over, within] = [cpu(http), cpu(inside)];
  return [
    compare({
      name: 'cpu-of-events',
      unit: 'us/token',
      ours: over.map((value, at) => value - (within[at] ?? Number.NaN)),
      aim: { kind: 'at_most', value: 10 },
      notes: { tokens: sizes[tier].fastTokens, model: 'chain', pieces: http[0]?.pieces ?? 0 },
    }),
    compare({ name: 'cpu', unit: 'us/token', ours: over, peer: { name: peer, values: within } }),
  ];
}

/** A small real model: what events cost of the time that an answer takes, and of the time to its beginning. */
async function real({ placement, pairs, tier, progress }: BenchContext): Promise<Comparison[]> {
  progress(generator);
  await pulledModel('generators', generator);
  await using service = await ChatService.start(placement, modelsDirectory);
  const asked = request(generator, 'Tell me a long story about a river.', sizes[tier].tokens);
  const sides = { http: () => service.overHttp(asked), inside: () => service.inProcess(asked) };
  await alternate(sides, 1);
  const { http, inside } = await alternate(sides, pairs);
  const decode = (turns: readonly ChatTurn[]) => turns.map(({ wallMs, tokens }) => wallMs / tokens);
  const notes = { tokens: sizes[tier].tokens, model: generator };
  return [
    compare({
      name: 'wall',
      unit: 'ms/token',
      ours: decode(http),
      peer: { name: peer, values: decode(inside) },
      aim: { kind: 'at_most', value: 1.01 },
      notes,
    }),
    compare({
      name: 'first-token-after-prefill',
      unit: 'ms',
      ours: http.map(({ firstMs, prefillMs }) => firstMs - prefillMs),
      aim: { kind: 'at_most', value: 5 },
      notes: { ...notes, prefillMs: Math.round(http[0]?.prefillMs ?? 0) },
    }),
  ];
}
