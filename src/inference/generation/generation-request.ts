import type { CacheType, Sampling } from '../../model-host/operations/generate.ts';
import type { MediaReference } from '../media/media-reference.ts';
import type { ChatMessage } from './prompt/chat-message.ts';
import type { FunctionTool, ToolChoice } from './tools/function-tools.ts';

/** The shape that is asked of the output, beside calls of functions. */
export type OutputFormat =
  | { readonly kind: 'text' }
  | { readonly kind: 'json_object' }
  /** Without `strict`, keywords that cannot be enforced are left out. */
  | { readonly kind: 'json_schema'; readonly schema: unknown; readonly strict: boolean }
  | { readonly kind: 'grammar'; readonly grammar: string };

interface SpeculationRequest {
  readonly policy: 'auto' | 'force';
  /** Name of a generator; without one, drafts come from the prompt. */
  readonly draftModel: string | undefined;
  readonly tokens: number;
}

/** The text that an output continues, without a chat template. */
export interface RawPrompt {
  /** A text, or tokens of the model. */
  readonly input: string | readonly number[];
  /** The text behind the output. */
  readonly suffix: string | undefined;
  /** Whether the output begins with the prompt. */
  readonly echo?: boolean;
}

/** A request for text as it is meant: aliases and defaults resolved, everything impossible refused. */
export interface GenerationRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** A text to go on with, as it is; there are no messages then. */
  readonly prompt: RawPrompt | undefined;
  readonly media: readonly MediaReference[];
  /** Undefined for the rest of the context. */
  readonly tokensMax: number | undefined;
  /** Answers to generate from the one prompt. */
  readonly choices: number;
  /** The last message is one of the assistant, and the answer goes on where it ends. */
  readonly continuesFinal: boolean;
  /** How long the model stays loaded afterwards, in milliseconds; undefined for the usual time. */
  readonly keepAliveMs: number | undefined;
  readonly stop: readonly string[];
  readonly ignoreEos: boolean;
  readonly sampling: Sampling;
  readonly topLogprobs: number | undefined;
  readonly promptCache: { readonly key: string | undefined } | undefined;
  readonly cacheType: CacheType | undefined;
  /** How to draft, or why nothing is drafted. */
  readonly speculation: SpeculationRequest | 'not_requested' | 'policy_off';
  readonly backend: string;
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice;
  /** Whether an answer may hold several calls; undefined where nothing was said. */
  readonly parallelCalls: boolean | undefined;
  readonly format: OutputFormat;
  readonly enableThinking: boolean | undefined;
  /** Further variables of the chat template. */
  readonly templateVariables: Readonly<Record<string, unknown>>;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** How an error in the middle of a stream is written; undefined for the way of the route. */
  readonly jsonErrors: boolean | undefined;
}

/** How tokens are chosen where a request does not say. */
export const usualSampling: Sampling = {
  temperature: 1,
  topP: 1,
  topK: 50,
  minP: 0,
  repetitionPenalty: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: undefined,
  logitBias: [],
};

/** A request that is not streamed, with everything at its default that is not given. */
export function generationRequest(
  given: Pick<GenerationRequest, 'model' | 'messages'> & Partial<GenerationRequest>,
): GenerationRequest {
  return {
    prompt: undefined,
    media: [],
    tokensMax: undefined,
    choices: 1,
    continuesFinal: false,
    keepAliveMs: undefined,
    stop: [],
    ignoreEos: false,
    sampling: usualSampling,
    topLogprobs: undefined,
    promptCache: { key: undefined },
    cacheType: undefined,
    speculation: 'not_requested',
    backend: 'auto',
    tools: [],
    toolChoice: { mode: 'auto', names: undefined, single: false },
    parallelCalls: undefined,
    format: { kind: 'text' },
    enableThinking: undefined,
    templateVariables: {},
    stream: false,
    includeUsage: false,
    jsonErrors: undefined,
    ...given,
  };
}
