import type { Device } from './available-backends.ts';
import type { HostMemory } from './child/host-memory.ts';
import type { HostSpec, ModelSpec } from './model-spec.ts';
import type { EventOf, InputOf, OperationName, ResultOf } from './operations.ts';
import type { Priority } from './priority.ts';

/** The properties of a model that are known once it is loaded. */
export interface LoadedInfo {
  /** Tokens that one input or generation may span. */
  readonly contextTokens?: number;
  /** Numbers of an embedding. */
  readonly dimension?: number;
  /** Texts that the tokenizer reads as one special token: what a user writes must not become one. */
  readonly specialTexts?: readonly string[];
  /** Text of the token that begins every input; absent where the model wants none. A prompt brings it along. */
  readonly bosText?: string;
  /** Texts of the tokens around what surrounds an output, of models that can fill a gap. */
  readonly infillTexts?: { readonly prefix: string; readonly suffix: string; readonly middle: string };
  /** Text of the token that ends an output. */
  readonly eosText?: string;
  /** Threads that the probe chose for reading a prompt and for decoding. */
  readonly threads?: { readonly prefill: number; readonly decode: number };
  /** Where llama.cpp has its weights. */
  readonly device?: Device;
}

/** The request that an operation works for, as the operation sees it. */
export interface OperationContext<Name extends OperationName> {
  /** Aborted when nobody waits any more: stop within one token, batch or slice. */
  readonly signal: AbortSignal;
  /** `foreground` unless given. */
  readonly priority?: Priority;
  readonly emit: (event: EventOf<Name>) => void;
  /** Says that work goes on, where nothing else is sent for long. Cheap: call it once a token, batch or slice. */
  readonly progress: () => void;
}

export type OperationHandlers = {
  readonly [Name in OperationName]?: (input: InputOf<Name>, context: OperationContext<Name>) => Promise<ResultOf<Name>>;
};

/** One loaded model in a child process. Errors for the caller are `ServiceError`s; anything else is a fault. */
export interface Backend {
  readonly info: LoadedInfo;
  readonly handlers: OperationHandlers;
  /** A tiny piece of real work, to tell a stuck engine from an idle one. */
  readonly canary?: () => Promise<void>;
  close(): Promise<void>;
}

/** Throws a `ServiceError` (`model_load_failed`) that says why the model cannot be used. */
export type LoadBackend<Spec extends HostSpec = ModelSpec> = (spec: Spec, memory: HostMemory) => Promise<Backend>;
