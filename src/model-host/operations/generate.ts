import type { InstalledModel } from '../../models/installed-model.ts';

/**
 * A piece of a prompt. In `markup`, which is what a chat template wrote, the texts of special tokens are those tokens; in
 * everything else, which is what people wrote, they are plain text.
 */
export interface PromptText {
  readonly text: string;
  readonly markup: boolean;
}

export type PromptPiece = PromptText | { readonly tokens: readonly number[] };

export interface Sampling {
  /** 0 takes the likeliest token each time. */
  readonly temperature: number;
  readonly topP: number;
  /** 0 for no bound. */
  readonly topK: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly seed: number | undefined;
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
}

/** The required form of the output, enforced while decoding. */
export interface Constraint {
  /** GBNF with the rule `root`. */
  readonly grammar: string;
  /** Sets in once the output has ended with this text, and holds to the end; without it from the first token. */
  readonly after: string | undefined;
  /** Only an output that begins with `after`, but for white space, is held to it. */
  readonly atStart?: boolean;
  /** Texts whose control tokens are shown in the output, besides `after`. */
  readonly marks?: readonly string[];
}

/** Key/value precision, by the names of the wire. */
export type CacheType = 'f16' | 'f32' | 'int8' | 'int4';

export interface Speculation {
  /** `force` fails the request where drafting is impossible; `auto` goes on without. */
  readonly policy: 'auto' | 'force';
  /** Without a model, drafts come from the prompt itself. */
  readonly draft: InstalledModel | undefined;
  /** Tokens drafted at a time, at least 1. */
  readonly tokens: number;
}

export interface GenerateInput {
  /** All of it, the token that begins an input included: nothing is put in front of it. */
  readonly prompt: readonly PromptPiece[];
  /** Tokens that may be generated; 0 only reads the prompt. */
  readonly tokensMax: number;
  /** Texts that end the output and are not part of it. */
  readonly stop: readonly string[];
  readonly ignoreEos: boolean;
  readonly sampling: Sampling;
  readonly constraint: Constraint | undefined;
  /** Alternatives given for each token, 0 to 20; undefined for no log probabilities at all. */
  readonly topLogprobs: number | undefined;
  /** Reuse and keep the state of the prompt; requests of one key prefer one another's state. */
  readonly promptCache: { readonly key: string | undefined } | undefined;
  readonly cacheType: CacheType | undefined;
  readonly speculation: Speculation | undefined;
  /** Whether the output is wanted piece by piece, as events, or whole, in the result. */
  readonly stream: boolean;
  /** Whether an event without text tells that the prompt has been read: others can start from its state then. */
  readonly tellsPromptRead?: boolean;
  /** The piece of the prompt that the output begins with, with its log probabilities where those are given. */
  readonly echo?: PromptPiece | undefined;
}

export interface TokenLogprob {
  readonly token: string;
  readonly bytes: readonly number[];
  /** Not a number for the first token of all, which nothing stands in front of. */
  readonly logprob: number;
}

/** A piece of output that is safe to show: whole characters, and no beginning of a stop text. */
export interface GenerateEvent {
  readonly text: string;
  readonly logprobs?: readonly (TokenLogprob & { readonly top: readonly TokenLogprob[] })[];
}

/** The text that ends the thoughts of a model. */
export const thinkEnd = '</think>';

export interface GenerateResult {
  /** `stop`: the model ended, a stop text came, or the grammar was complete. `length`: `tokensMax` or the context. */
  readonly finish: 'stop' | 'length';
  /** The stop text that ended the output, where one did. */
  readonly stopText: string | undefined;
  /** Whole output; empty when it was streamed. */
  readonly text: string;
  readonly logprobs: GenerateEvent['logprobs'];
  readonly promptTokens: number;
  /** Tokens of the prompt whose state was there already. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  /** Tokens up to the end of the thoughts, where the output has ended any. */
  readonly thoughtTokens?: number | undefined;
  readonly speculation: SpeculationReport | undefined;
  readonly prefillMs: number;
  readonly decodeMs: number;
}

export interface SpeculationReport {
  readonly decision: 'enabled' | 'disabled';
  readonly disabledReason: string | undefined;
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
}

/** Several generations that are decoded together. */
export interface GenerateBatchInput {
  readonly items: readonly GenerateInput[];
}

export interface GenerateBatchResult {
  readonly items: readonly (
    | { readonly result: GenerateResult }
    | { readonly error: { readonly code: string; readonly message: string } }
  )[];
  /** Times that items were started together, as many as there are sequences at most. */
  readonly nativeBatches: number;
}
