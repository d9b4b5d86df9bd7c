import { type GenerationOutput, totalOf } from '../../../inference/generation/generate.ts';
import type { GenerationRequest } from '../../../inference/generation/generation-request.ts';
import type { OutputDelta } from '../../../inference/generation/output-parser.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GenerateEvent, TokenLogprob } from '../../../model-host/operations/generate.ts';
import type { GenerateResponse, LogprobsBody, SpeculationBody, Usage } from '../../../protocol/inference/generate.ts';
import { usageOf } from '../../../protocol/inference/usage.ts';

/** Members that every answer to one request shares. */
export interface CompletionHead {
  readonly id: string;
  /** Seconds since 1970. */
  readonly created: number;
  readonly model: string;
}

export function newHead(
  { clock }: { readonly clock: Clock },
  { model }: Pick<GenerationRequest, 'model'>,
  prefix = 'chatcmpl',
): CompletionHead {
  return { id: `${prefix}-${freshId()}`, created: Math.floor(clock.nowMs() / 1_000), model };
}

export function newCallId(): string {
  return `call_${freshId()}`;
}

function freshId(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

interface WholeMessage {
  content: string;
  refusal: string;
  reasoning: string;
  readonly calls: { name: string; arguments: string }[];
}

/** The answer to a request that is not streamed. `newCallId` gives a fresh id for each call. */
export function completionBody(
  head: CompletionHead,
  request: GenerationRequest,
  outputs: readonly GenerationOutput[],
  newCallId: () => string,
): GenerateResponse {
  return {
    id: head.id,
    object: 'chat.completion',
    created: head.created,
    model: head.model,
    choices: outputs.map((output, index) => choiceBody(request, output, index, newCallId)),
    usage: usageOfOutputs(outputs),
    speculation: speculationOf(request, outputs),
  };
}

function choiceBody(
  request: GenerationRequest,
  { result, deltas, finish }: GenerationOutput,
  index: number,
  newCallId: () => string,
): GenerateResponse['choices'][number] {
  const { content, refusal, reasoning, calls } = joined(deltas);
  return {
    index,
    message: {
      role: 'assistant',
      content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
      refusal: refusal === '' ? null : refusal,
      reasoning_content: reasoning === '' ? null : reasoning,
      ...(calls.length === 0
        ? {}
        : { tool_calls: calls.map((call) => ({ id: newCallId(), type: 'function' as const, function: call })) }),
    },
    logprobs: logprobsBody(request.topLogprobs === undefined ? undefined : result.logprobs),
    finish_reason: finish,
  };
}

function joined(deltas: readonly OutputDelta[]): WholeMessage {
  const whole: WholeMessage = { content: '', refusal: '', reasoning: '', calls: [] };
  for (const delta of deltas) {
    if (delta.kind === 'content') whole.content += delta.text;
    else if (delta.kind === 'refusal') whole.refusal += delta.text;
    else if (delta.kind === 'reasoning') whole.reasoning += delta.text;
    else if (delta.kind === 'call') whole.calls.push({ name: delta.name, arguments: '' });
    else {
      const call = whole.calls[delta.index];
      if (call !== undefined) call.arguments += delta.text;
    }
  }
  return whole;
}

export function usageOfOutputs(outputs: readonly GenerationOutput[]): Usage {
  const { promptTokens, completionTokens, cachedTokens } = totalOf(outputs);
  const details = { cached_tokens: cachedTokens };
  return { ...usageOf(promptTokens, completionTokens, cachedTokens), prompt_tokens_details: details };
}

export function speculationOf(
  { speculation }: GenerationRequest,
  outputs: readonly GenerationOutput[],
): SpeculationBody {
  const asked = typeof speculation !== 'string';
  const reports = outputs.map(({ result }) => result.speculation);
  const sum = (count: 'draftedTokens' | 'acceptedTokens') =>
    reports.reduce((total, report) => total + (report?.[count] ?? 0), 0);
  const [report] = reports;
  return {
    policy: asked ? speculation.policy : speculation === 'policy_off' ? 'off' : 'auto',
    calibration: 'none',
    decision: report?.decision ?? 'disabled',
    disabled_reason:
      report?.decision === 'enabled' ? null : (report?.disabledReason ?? (asked ? 'unavailable' : speculation)),
    drafted_tokens: sum('draftedTokens'),
    accepted_tokens: sum('acceptedTokens'),
  };
}

/** In the shape of the wire; `null` where there are none. */
export function logprobsBody(logprobs: GenerateEvent['logprobs']): LogprobsBody {
  if (logprobs === undefined) return null;
  const content = logprobs.map((each) => ({ ...wire(each), top_logprobs: each.top.map(wire) }));
  return { content, refusal: null };
}

function wire({ token, logprob, bytes }: TokenLogprob) {
  return { token, logprob, bytes: [...bytes] };
}
