import type { GenerateEvent, SpeculationReport, TokenLogprob } from '../../../model-host/operations/generate.ts';
import { type FinishReason, finishReasons } from '../../../protocol/inference/finish-reasons.ts';
import type { SpeculationBody } from '../../../protocol/inference/generate.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { GenerationOptions, GenerationOutput } from '../../generation/generate.ts';
import type { OutputDelta } from '../../generation/output-parser.ts';
import type { ProviderClient, Unread } from '../client/provider-client.ts';
import type { Answered } from '../client/provider-gate.ts';
import { countOf, remoteOutput, type TokenCounts } from './remote-output.ts';

interface ChatUsage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
}

interface ChatAnswer {
  readonly choices?: readonly ChatChoice[];
  readonly usage?: ChatUsage | null;
  readonly speculation?: Partial<SpeculationBody> | null;
}

interface ChatChoice {
  readonly index?: number;
  readonly message?: ChatPiece;
  readonly delta?: ChatPiece;
  readonly finish_reason?: string | null;
  readonly logprobs?: { readonly content?: readonly ChatLogprob[] | null } | null;
}

interface ChatLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes?: readonly number[] | null;
  readonly top_logprobs?: readonly ChatLogprob[];
}

interface ChatPiece {
  readonly content?: string | null;
  readonly refusal?: string | null;
  readonly reasoning_content?: string | null;
  /** As OpenRouter and newer servers call it. */
  readonly reasoning?: string | null;
  readonly tool_calls?: readonly {
    readonly index?: number;
    readonly function?: { readonly name?: string; readonly arguments?: string };
  }[];
}

/** Undefined for an answer of another shape. Throws `model_not_supported` where there are fewer answers than `count`. */
export function readChat(
  { name }: Pick<ProviderClient, 'name'>,
  answer: unknown,
  count: number,
): Answered<readonly GenerationOutput[]> | undefined {
  const { choices, usage, speculation } = (answer ?? {}) as ChatAnswer;
  if (!Array.isArray(choices) || choices.length === 0) return undefined;
  if (choices.length < count) throw tooFew(name, choices.length, count);
  const counts = countsOf(usage);
  const value = (choices as readonly ChatChoice[])
    .toSorted((one, other) => (one.index ?? 0) - (other.index ?? 0))
    .map(({ message, finish_reason, logprobs }, at) =>
      remoteOutput(deltasOf(message ?? {}, 0), finishOf(finish_reason), {
        ...shareOf(counts, at),
        logprobs: logprobsOf(logprobs),
        speculation: reportOf(speculation, at),
      }),
    );
  return { value, tokens: counts.promptTokens + counts.completionTokens };
}

/** Reads server-sent events of chunks, hands their deltas over, and makes outputs of what remains. */
export function streamedChat(
  { name }: Pick<ProviderClient, 'name'>,
  choices: number,
  onPiece: NonNullable<GenerationOptions['onPiece']>,
  unread: Unread,
) {
  const finishes = new Array<FinishReason | undefined>(choices).fill(undefined);
  const calls = new Array<number>(choices).fill(0);
  let usage: ChatUsage | null | undefined;
  let speculation: ChatAnswer['speculation'];
  let isDone = false;
  const onLine = (line: string) => {
    if (!line.startsWith('data:')) return;
    const data = line.slice('data:'.length).trim();
    if (data === '[DONE]') {
      isDone = true;
      return;
    }
    const chunk = parsed(data);
    if (typeof chunk !== 'object' || chunk === null || chunk.error) throw unread(chunk);
    usage = chunk.usage ?? usage;
    speculation = chunk.speculation ?? speculation;
    for (const { index = 0, delta, finish_reason, logprobs } of chunk.choices ?? []) {
      if (!(index in finishes)) throw unread();
      const deltas = deltasOf(delta ?? {}, calls[index] ?? 0);
      calls[index] = Math.max(calls[index] ?? 0, ...deltas.map((each) => ('index' in each ? each.index + 1 : 0)));
      const probable = logprobsOf(logprobs);
      if (deltas.length > 0 || probable !== undefined) onPiece(index, deltas, probable);
      // Some servers leave the reason of the usual end out.
      finishes[index] = finish_reason ? finishOf(finish_reason) : (finishes[index] ?? 'stop');
    }
  };
  const end = (): Answered<readonly GenerationOutput[]> => {
    // A connection that ended early looks like an end otherwise.
    if (!isDone) throw unread();
    const counts = countsOf(usage);
    const value = finishes.map((finish, at) => {
      if (finish === undefined) throw tooFew(name, finishes.filter(Boolean).length, choices);
      return remoteOutput([], finish, { ...shareOf(counts, at), speculation: reportOf(speculation, at) });
    });
    return { value, tokens: counts.promptTokens + counts.completionTokens };
  };
  return { onLine, end };
}

function tooFew(name: string, given: number, wanted: number): ServiceError {
  const message = `n: the provider "${name}" gives ${given} of ${wanted} answers; ask for one at a time`;
  return new ServiceError('model_not_supported', message);
}

function parsed(data: string): (ChatAnswer & { readonly error?: unknown }) | null | undefined {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function deltasOf(piece: ChatPiece, known: number): OutputDelta[] {
  const { content, refusal, tool_calls } = piece;
  const reasoning = piece.reasoning_content ?? piece.reasoning;
  const deltas: OutputDelta[] = [];
  for (const [kind, text] of Object.entries({ reasoning, content, refusal })) {
    if (!text) continue;
    // Some servers answer parts, which would be shown as the names of their type.
    if (typeof text !== 'string') throw new TypeError('a text is no string');
    deltas.push({ kind, text } as OutputDelta);
  }
  for (const [at, { index = at, function: called }] of (tool_calls ?? []).entries()) {
    // Later pieces of a call name it again at some servers.
    if (called?.name && index >= known) deltas.push({ kind: 'call', index, name: called.name });
    if (called?.arguments) deltas.push({ kind: 'arguments', index, text: called.arguments });
  }
  return deltas;
}

function finishOf(reason: string | null | undefined): FinishReason {
  return finishReasons.find((each) => each === reason) ?? 'stop';
}

function logprobsOf(logprobs: ChatChoice['logprobs']): GenerateEvent['logprobs'] {
  return logprobs?.content?.map((each) => ({ ...tokenOf(each), top: (each.top_logprobs ?? []).map(tokenOf) }));
}

function tokenOf({ token, logprob, bytes }: ChatLogprob): TokenLogprob {
  return { token, logprob, bytes: bytes ?? [...new TextEncoder().encode(token)] };
}

/** The counts are those of all answers together. */
function shareOf(counts: TokenCounts, at: number): TokenCounts {
  return at === 0 ? counts : { ...counts, completionTokens: 0 };
}

function reportOf(speculation: ChatAnswer['speculation'], at: number): SpeculationReport | undefined {
  const { decision, disabled_reason, drafted_tokens, accepted_tokens } = speculation ?? {};
  if (decision === undefined || at > 0) return undefined;
  return {
    decision,
    disabledReason: disabled_reason ?? undefined,
    draftedTokens: countOf(drafted_tokens),
    acceptedTokens: countOf(accepted_tokens),
  };
}

function countsOf(usage: ChatUsage | null | undefined): TokenCounts {
  return {
    promptTokens: countOf(usage?.prompt_tokens),
    cachedTokens: countOf(usage?.prompt_tokens_details?.cached_tokens),
    completionTokens: countOf(usage?.completion_tokens),
  };
}
