import type { GenerationOutput } from '../../../inference/generation/generate.ts';
import type { OutputDelta } from '../../../inference/generation/output-parser.ts';
import type { GenerateEvent } from '../../../model-host/operations/generate.ts';
import { inferenceReason, openAiError } from '../../../protocol/inference/error-body.ts';
import type { ServiceError } from '../../../protocol/service-error.ts';
import { logprobsBody } from '../../inference/generation/completion-body.ts';
import type { ListedItem } from './input-items.ts';
import { itemId } from './item-id.ts';
import { MessageLogprobs } from './message-logprobs.ts';
import type { StoredResponse } from './response-store.ts';

/** One event of a streamed response. */
interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
}

/** Of the tokens of a text, in the shape of the wire. */
type Logprobs = NonNullable<ReturnType<typeof logprobsBody>>['content'];
type Kind = 'reasoning' | 'message' | 'function_call';

/** An item of the output while it grows. */
interface OpenItem {
  readonly kind: Kind;
  readonly id: string;
  readonly index: number;
  readonly callId: string;
  readonly name: string;
  text: string;
  readonly logprobs: Logprobs;
}

const kinds = { content: 'message', refusal: 'message', reasoning: 'reasoning', arguments: 'function_call' } as const;
const idPrefixes: Readonly<Record<Kind, string>> = { reasoning: 'rs', message: 'msg', function_call: 'fc' };

/** Makes of an output the items of a response, and the events that tell how they grow, in their order. */
export class ResponseEvents {
  readonly #head: { readonly id: string };
  readonly #freshId: () => string;
  readonly #items: ListedItem[] = [];
  readonly #logprobs = new MessageLogprobs();
  #open: OpenItem | undefined;
  #sequence = 0;

  /** `head` holds what all bodies of the response have in common; `freshId` gives the ids of calls. */
  constructor(head: { readonly id: string }, freshId: () => string) {
    this.#head = head;
    this.#freshId = freshId;
  }

  begin(): ResponseEvent[] {
    const response = { ...this.#head, status: 'in_progress', incomplete_details: null, output: [], usage: null };
    return [this.#event('response.created', { response }), this.#event('response.in_progress', { response })];
  }

  pieces(deltas: readonly OutputDelta[], logprobs: GenerateEvent['logprobs'] = []): ResponseEvent[] {
    const tokens = this.#logprobs.of(deltas, logprobs);
    return deltas.flatMap((delta, at) => {
      if (delta.kind === 'call') return [...this.#close(), ...this.#begin('function_call', delta.name)];
      const kind = kinds[delta.kind];
      const before = this.#open?.kind === kind ? [] : [...this.#close(), ...this.#begin(kind)];
      return [...before, this.#grow(delta.text, logprobsBody(tokens[at])?.content ?? [])];
    });
  }

  /** The last events; the whole response is in the last of them. It says by `store` whether `keep` has kept it. */
  end(
    output: GenerationOutput,
    keep: (response: StoredResponse['body']) => boolean,
  ): { readonly events: ResponseEvent[]; readonly response: object } {
    const isCut = output.finish === 'length';
    const before = [
      ...this.pieces(output.deltas, output.result.logprobs),
      ...(isCut ? [] : this.#emptyMessage()),
      ...this.#close(isCut ? 'incomplete' : 'completed'),
    ];
    const whole = this.#whole(output);
    const response = keep(whole) ? whole : { ...whole, store: false };
    const type = isCut ? 'response.incomplete' : 'response.completed';
    return { events: [...before, this.#event(type, { response })], response };
  }

  /** The last event of a response that failed. Some libraries read it from `error`, others from beside it. */
  failure(error: ServiceError): ResponseEvent {
    const { type, ...facts } = openAiError(error);
    return this.#event('error', { ...facts, reason: inferenceReason(error), error: { type, ...facts } });
  }

  #whole({ result, finish }: GenerationOutput): StoredResponse['body'] {
    const { promptTokens, cachedTokens, completionTokens, thoughtTokens } = result;
    const thinks = this.#items.some(({ type }) => type === 'reasoning');
    return {
      ...this.#head,
      status: finish === 'length' ? 'incomplete' : 'completed',
      incomplete_details: finish === 'length' ? { reason: 'max_output_tokens' } : null,
      output: this.#items,
      usage: {
        input_tokens: promptTokens,
        input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: 0 },
        output_tokens: completionTokens,
        output_tokens_details: { reasoning_tokens: thinks ? (thoughtTokens ?? completionTokens) : 0 },
        total_tokens: promptTokens + completionTokens,
      },
    };
  }

  /** A model that says nothing and calls nothing has answered too: clients wait for a message or a call. */
  #emptyMessage(): ResponseEvent[] {
    const kinds = [...this.#items.map(({ type }) => type), this.#open?.kind];
    const answers = kinds.some((kind) => kind === 'message' || kind === 'function_call');
    return answers ? [] : [...this.#close(), ...this.#begin('message')];
  }

  #begin(kind: Kind, name = ''): ResponseEvent[] {
    const index = this.#items.length;
    const id = itemId(idPrefixes[kind], { responseId: this.#head.id, of: 'output', index });
    const open = { kind, id, index, callId: `call_${this.#freshId()}`, name, text: '', logprobs: [] };
    this.#open = open;
    const added = { output_index: open.index, item: itemOf(open, 'in_progress') };
    const first = this.#event('response.output_item.added', added);
    return kind === 'function_call' ? [first] : [first, this.#partEvent('added', open)];
  }

  #grow(text: string, logprobs: Logprobs): ResponseEvent {
    const open = this.#open;
    if (open === undefined) throw new TypeError('an item grows once it has begun');
    open.text += text;
    open.logprobs.push(...logprobs);
    return this.#textEvent('delta', open, { delta: text }, logprobs);
  }

  /** `incomplete` for an item that was cut: nobody is to make a call of half of its arguments. */
  #close(status: 'completed' | 'incomplete' = 'completed'): ResponseEvent[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    const item = itemOf(open, status);
    this.#items.push(item);
    const isCall = open.kind === 'function_call';
    const whole = isCall ? { name: open.name, arguments: open.text } : { text: open.text };
    return [
      this.#textEvent('done', open, whole, open.logprobs),
      ...(isCall ? [] : [this.#partEvent('done', open)]),
      this.#event('response.output_item.done', { output_index: open.index, item }),
    ];
  }

  #textEvent(stage: 'delta' | 'done', { kind, id, index }: OpenItem, more: object, logprobs: Logprobs): ResponseEvent {
    const names = { reasoning: 'reasoning_text', message: 'output_text', function_call: 'function_call_arguments' };
    const place = kind === 'function_call' ? {} : { content_index: 0 };
    const at = { item_id: id, output_index: index, ...place };
    return this.#event(`response.${names[kind]}.${stage}`, {
      ...at,
      ...more,
      ...(kind === 'message' ? { logprobs } : {}),
    });
  }

  #partEvent(stage: 'added' | 'done', open: OpenItem): ResponseEvent {
    const at = { item_id: open.id, output_index: open.index, content_index: 0 };
    return this.#event(`response.content_part.${stage}`, { ...at, part: partOf(open) });
  }

  #event(type: string, more: object): ResponseEvent {
    const sequence_number = this.#sequence;
    this.#sequence += 1;
    return { type, sequence_number, ...more };
  }
}

function partOf({ kind, text, logprobs }: OpenItem) {
  if (kind === 'reasoning') return { type: 'reasoning_text', text } as const;
  return { type: 'output_text', text, annotations: [], logprobs } as const;
}

function itemOf(open: OpenItem, status: 'in_progress' | 'completed' | 'incomplete'): ListedItem {
  const { kind, id, callId, name, text } = open;
  if (kind === 'function_call') return { id, type: kind, status, call_id: callId, name, arguments: text };
  const part = partOf(open);
  const content = status === 'in_progress' ? [] : [part];
  if (part.type === 'reasoning_text') return { id, type: 'reasoning', status, summary: [], content };
  return { id, type: 'message', status, role: 'assistant', content: status === 'in_progress' ? [] : [part] };
}
