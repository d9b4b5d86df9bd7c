import type { GenerationOutput } from '../../inference/generation/generate.ts';
import type { GenerationRequest } from '../../inference/generation/generation-request.ts';
import type { OutputDelta } from '../../inference/generation/output-parser.ts';
import type { Clock } from '../../lib/clock.ts';
import type { GenerateEvent, GenerateResult, TokenLogprob } from '../../model-host/operations/generate.ts';
import type { GenerateResponse, LogprobsBody, SpeculationBody, Usage } from '../../protocol/inference/generate.ts';
import { usageOf } from '../../protocol/inference/usage.ts';

/** What every answer to one request says of itself. */
export interface CompletionHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
}

export function newHead({ clock }: { readonly clock: Clock }, { model }: GenerationRequest): CompletionHead {
  return { id: `chatcmpl-${freshId()}`, created: Math.floor(clock.nowMs() / 1_000), model };
}

export function newCallId(): string {
  return `call_${freshId()}`;
}

function freshId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

interface WholeMessage {
  content: string;
  reasoning: string;
  readonly calls: { name: string; arguments: string }[];
}

/** The answer to a request that is not streamed. `newCallId` gives a fresh id for each call. */
export function completionBody(
  head: CompletionHead,
  request: GenerationRequest,
  { result, deltas, finish }: GenerationOutput,
  newCallId: () => string,
): GenerateResponse {
  const { content, reasoning, calls } = joined(deltas);
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: content === '' && calls.length > 0 ? null : content,
          refusal: null,
          reasoning_content: reasoning === '' ? null : reasoning,
          ...(calls.length === 0
            ? {}
            : { tool_calls: calls.map((call) => ({ id: newCallId(), type: 'function' as const, function: call })) }),
        },
        logprobs: logprobsBody(request.topLogprobs === undefined ? undefined : (result.logprobs ?? [])),
        finish_reason: finish,
      },
    ],
    usage: usageOfResult(result),
    speculation: speculationOf(request, result),
  };
}

function joined(deltas: readonly OutputDelta[]): WholeMessage {
  const whole: WholeMessage = { content: '', reasoning: '', calls: [] };
  for (const delta of deltas) {
    if (delta.kind === 'content') whole.content += delta.text;
    else if (delta.kind === 'reasoning') whole.reasoning += delta.text;
    else if (delta.kind === 'call') whole.calls.push({ name: delta.name, arguments: '' });
    else {
      const call = whole.calls[delta.index];
      if (call !== undefined) call.arguments += delta.text;
    }
  }
  return whole;
}

export function usageOfResult({ promptTokens, completionTokens, cachedTokens }: GenerateResult): Usage {
  const details = { cached_tokens: cachedTokens };
  return { ...usageOf(promptTokens, completionTokens, cachedTokens), prompt_tokens_details: details };
}

export function speculationOf(
  { speculation }: GenerationRequest,
  { speculation: report }: GenerateResult,
): SpeculationBody {
  const asked = typeof speculation !== 'string';
  return {
    policy: asked ? speculation.policy : speculation === 'policy_off' ? 'off' : 'auto',
    calibration: 'none',
    decision: report?.decision ?? 'disabled',
    disabled_reason:
      report?.decision === 'enabled' ? null : (report?.disabledReason ?? (asked ? 'unavailable' : speculation)),
    drafted_tokens: report?.draftedTokens ?? 0,
    accepted_tokens: report?.acceptedTokens ?? 0,
  };
}

/** In the shape of the wire; `null` where none were asked for. */
export function logprobsBody(logprobs: GenerateEvent['logprobs']): LogprobsBody {
  if (logprobs === undefined) return null;
  const content = logprobs.map((each) => ({ ...wire(each), top_logprobs: each.top.map(wire) }));
  return { content, refusal: null };
}

function wire({ token, logprob, bytes }: TokenLogprob) {
  return { token, logprob, bytes: [...bytes] };
}
