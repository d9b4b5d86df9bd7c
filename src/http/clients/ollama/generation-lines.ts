import type { GenerationOutput } from '../../../inference/generation/generate.ts';
import type { OutputDelta } from '../../../inference/generation/output-parser.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GenerateEvent } from '../../../model-host/operations/generate.ts';
import { logprobsBody } from '../../inference/generation/completion-body.ts';

/** Which route is answered: the text stands in `message.content`, or in `response`. */
export type GenerationShape = 'chat' | 'generate';

interface Call {
  readonly name: string;
  arguments: string;
}

/** Output since the last line. */
interface Said {
  content: string;
  thinking: string;
  readonly calls: Call[];
}

type Logprobs = GenerateEvent['logprobs'];

/** Writes one answer in Ollama's shape: whole, or line by line. */
export class GenerationLines {
  readonly #shape: GenerationShape;
  readonly #model: string;
  readonly #clock: Clock;
  readonly #startMs: number;
  /** A call is told when it is whole. */
  #open: Call | undefined;
  /** Of tokens since the last line, where they were asked for. */
  #logprobs: Logprobs;

  constructor(shape: GenerationShape, model: string, clock: Clock) {
    this.#shape = shape;
    this.#model = model;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  /** Lines for pieces of the answer. */
  pieces(deltas: readonly OutputDelta[], logprobs: Logprobs): object[] {
    const said = this.#read(deltas, logprobs);
    const isEmpty = said.content === '' && said.thinking === '' && said.calls.length === 0;
    return isEmpty ? [] : [this.#line(said, { done: false })];
  }

  /** The last line, and what is still to be said before it. */
  end(output: GenerationOutput): object[] {
    const said = this.#read(output.deltas, output.result.logprobs);
    this.#closeCall(said);
    const isEmpty = said.content === '' && said.thinking === '' && said.calls.length === 0;
    const last = this.#line({ content: '', thinking: '', calls: [] }, this.#totals(output));
    return isEmpty ? [last] : [this.#line(said, { done: false }), last];
  }

  whole(output: GenerationOutput): object {
    const said = this.#read(output.deltas, output.result.logprobs);
    this.#closeCall(said);
    return this.#line(said, this.#totals(output));
  }

  /** The answer to a request that only has a model loaded, or unloaded. */
  nothing(reason: 'load' | 'unload'): object {
    return this.#line({ content: '', thinking: '', calls: [] }, { done: true, done_reason: reason });
  }

  #read(deltas: readonly OutputDelta[], logprobs: Logprobs): Said {
    if (logprobs !== undefined) this.#logprobs = [...(this.#logprobs ?? []), ...logprobs];
    const said: Said = { content: '', thinking: '', calls: [] };
    for (const delta of deltas) {
      if (delta.kind === 'content' || delta.kind === 'refusal') said.content += delta.text;
      else if (delta.kind === 'reasoning') said.thinking += delta.text;
      else if (delta.kind === 'arguments') {
        if (this.#open !== undefined) this.#open.arguments += delta.text;
      } else {
        this.#closeCall(said);
        this.#open = { name: delta.name, arguments: '' };
      }
    }
    return said;
  }

  #closeCall(said: Said): void {
    if (this.#open !== undefined) said.calls.push(this.#open);
    this.#open = undefined;
  }

  #line({ content, thinking, calls }: Said, rest: object): object {
    const head = { model: this.#model, created_at: new Date(this.#clock.nowMs()).toISOString() };
    const thought = thinking === '' ? {} : { thinking };
    const tokens = this.#logprobs === undefined ? {} : { logprobs: logprobsBody(this.#logprobs)?.content };
    this.#logprobs = undefined;
    const more = { ...tokens, ...rest };
    if (this.#shape === 'generate') return { ...head, response: content, ...thought, ...more };
    const tool_calls = calls.flatMap(({ name, arguments: text }) => {
      const given = parsed(text);
      return given === undefined ? [] : [{ function: { name, arguments: given } }];
    });
    const called = tool_calls.length === 0 ? {} : { tool_calls };
    return { ...head, message: { role: 'assistant', content, ...thought, ...called }, ...more };
  }

  /** Durations are nanoseconds. */
  #totals({ result, finish }: GenerationOutput): object {
    const nanoseconds = (milliseconds: number) => Math.round(milliseconds * 1_000_000);
    const totalMs = this.#clock.monotonicMs() - this.#startMs;
    return {
      done: true,
      done_reason: finish === 'length' ? 'length' : 'stop',
      total_duration: nanoseconds(totalMs),
      load_duration: nanoseconds(Math.max(0, totalMs - result.prefillMs - result.decodeMs)),
      prompt_eval_count: result.promptTokens,
      prompt_eval_duration: nanoseconds(result.prefillMs),
      eval_count: result.completionTokens,
      eval_duration: nanoseconds(result.decodeMs),
    };
  }
}

/** Undefined for arguments that were cut off: such a call has no shape here, and the reason `length` says why. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
