import { join } from 'node:path';
import type { Tensor } from 'onnxruntime-node';
import { yieldToEventLoop } from '../../../lib/concurrency/yield-to-event-loop.ts';
import type { InstalledModel } from '../../../models/installed-model.ts';
import { readFolderJson } from '../../../models/model-folder.ts';
import { floats, integerRows, OnnxSession } from './onnx-session.ts';
import type { QueueContext } from './text/batch-queue.ts';
import type { TextTokenizer } from './text/text-tokenizer.ts';

/** Which tokens outputs begin and end with, and which it never has. */
interface OutputTokens {
  readonly start: readonly number[];
  readonly ends: ReadonlySet<number>;
  readonly never: readonly number[];
  /** Not the first token of an output. */
  readonly neverFirst: readonly number[];
}

interface WrittenTokens {
  readonly tokens: number[];
  readonly truncated: boolean;
  /** The sum for all of `tokens`, and the one that ended them. */
  readonly logprob: number;
}

const inputs = ['input_ids', 'encoder_hidden_states', 'encoder_attention_mask'];

/** The part of a model that writes, token by token, about what an encoder has read. */
export class SequenceDecoder {
  readonly outputTokens: OutputTokens;
  readonly #session: OnnxSession;
  /** Tokens that an output may have, with what it begins with. */
  readonly #contextTokens: number;

  private constructor(session: OnnxSession, outputTokens: OutputTokens, contextTokens: number) {
    this.#session = session;
    this.outputTokens = outputTokens;
    this.#contextTokens = contextTokens;
  }

  /** `never` are tokens that are not written besides those that the model's files name. */
  static async open(
    model: InstalledModel,
    tokenizer: TextTokenizer,
    { threads, contextTokens, never = [] }: { threads: number; contextTokens: number; never?: readonly number[] },
  ): Promise<SequenceDecoder> {
    const path = model.companions?.decoder;
    if (path === undefined) throw new Error('only models of an encoder_model.onnx and a decoder_model.onnx are run');
    const outputTokens = outputTokensOf(model, tokenizer);
    const session = await OnnxSession.open(join(model.directory, path), threads);
    const unknown = session.inputs.find((name) => !inputs.includes(name));
    if (unknown !== undefined) throw new Error(`its decoder reads "${unknown}"; one that takes whole texts is wanted`);
    return new SequenceDecoder(session, { ...outputTokens, never: [...outputTokens.never, ...never] }, contextTokens);
  }

  /** Logits of the token behind `ids`. `feeds` is what the encoder made. */
  async next(ids: readonly number[], feeds: Readonly<Record<string, Tensor>>): Promise<Float32Array> {
    const { logits } = await this.#session.run({ input_ids: integerRows([ids], ids.length, 0), ...feeds }, ['logits']);
    const { data, dims } = floats(logits);
    return data.subarray(data.length - (dims.at(-1) ?? 0));
  }

  /** The likeliest tokens behind `start`, to the end or, truncated, to the limit. */
  async write(
    feeds: Readonly<Record<string, Tensor>>,
    start: readonly number[],
    tokensMax: number,
    { signal, progress }: QueueContext,
  ): Promise<WrittenTokens> {
    const { ends, never, neverFirst } = this.outputTokens;
    const ids = [...start];
    let logprob = 0;
    const most = Math.min(tokensMax, this.#contextTokens - start.length);
    while (ids.length - start.length < most) {
      const logits = await this.next(ids, feeds);
      const next = likeliest(logits, ids.length === start.length ? [...never, ...neverFirst] : never);
      logprob += logChance(logits, next);
      if (ends.has(next)) return { tokens: ids.slice(start.length), truncated: false, logprob };
      ids.push(next);
      progress();
      await yieldToEventLoop();
      signal.throwIfAborted();
    }
    return { tokens: ids.slice(start.length), truncated: true, logprob };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

/** The logarithm of the chance of one token. */
export function logChance(logits: Float32Array, id: number): number {
  let most = Number.NEGATIVE_INFINITY;
  for (const logit of logits) most = Math.max(most, logit);
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  return (logits[id] ?? Number.NEGATIVE_INFINITY) - most - Math.log(sum);
}

function likeliest(logits: Float32Array, never: readonly number[]): number {
  for (const id of never) logits[id] = Number.NEGATIVE_INFINITY;
  let best = 0;
  for (let id = 1; id < logits.length; id += 1) if ((logits[id] ?? 0) > (logits[best] ?? 0)) best = id;
  return best;
}

/** How outputs begin and end, as `generation_config.json` or `config.json` say. */
function outputTokensOf(model: InstalledModel, tokenizer: TextTokenizer): OutputTokens {
  const config = {
    ...readFolderJson(model.directory, 'config.json'),
    ...readFolderJson(model.directory, 'generation_config.json'),
  };
  const { decoder } = config;
  const inner = (typeof decoder === 'object' && decoder !== null ? decoder : {}) as Record<string, unknown>;
  const ids = (name: string) => [config[name] ?? inner[name] ?? []].flat(2).filter((id) => isId(id, tokenizer));
  const [start] = [...ids('decoder_start_token_id'), ...ids('bos_token_id'), ...ids('pad_token_id')];
  const ends = new Set(ids('eos_token_id'));
  if (start === undefined || ends.size === 0) {
    throw new Error('neither generation_config.json nor config.json says which tokens begin and end an output');
  }
  const single = [config.bad_words_ids ?? []].flat().filter((each) => Array.isArray(each) && each.length === 1);
  const never = [...ids('suppress_tokens'), ...single.flat().filter((id) => isId(id, tokenizer))];
  return { start: [start, ...ids('forced_bos_token_id')], ends, never, neverFirst: ids('begin_suppress_tokens') };
}

function isId(id: unknown, { vocabularySize }: TextTokenizer): id is number {
  return typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < vocabularySize;
}
