import { ServiceError } from '../../../protocol/service-error.ts';
import { type GenerationRequest, usualSampling } from '../../generation/generation-request.ts';

/**
 * Throws `model_not_supported` for the first member that is given although the protocol of the provider has no word for it: an
 * answer that left it out would look as if it had been honoured.
 */
export function refuseMembers(provider: string, given: Readonly<Record<string, boolean>>): void {
  const member = Object.keys(given).find((name) => given[name]);
  if (member === undefined) return;
  throw new ServiceError(
    'model_not_supported',
    `${member}: the provider "${provider}" cannot be asked for this; leave it out`,
  );
}

/** Members of a generation that not every protocol has. */
type GenerationMember = keyof ReturnType<typeof givenMembers>;

/** The same for all members of a generation but those that the protocol takes. */
export function refuseOtherMembers(
  provider: string,
  request: GenerationRequest,
  taken: readonly GenerationMember[],
): void {
  const given = givenMembers(request);
  refuseMembers(provider, { ...given, ...Object.fromEntries(taken.map((member) => [member, false])) });
}

/** Which members ask for something else than usual. A cache of the prompt and drafts change no answer, and are left out. */
function givenMembers(request: GenerationRequest) {
  const { sampling, speculation, templateVariables, toolChoice, tools } = request;
  const { reasoning_effort, ...variables } = templateVariables;
  return {
    seed: sampling.seed !== undefined,
    top_k: sampling.topK !== usualSampling.topK,
    min_p: sampling.minP !== usualSampling.minP,
    repetition_penalty: sampling.repetitionPenalty !== usualSampling.repetitionPenalty,
    frequency_penalty: sampling.frequencyPenalty !== 0,
    presence_penalty: sampling.presencePenalty !== 0,
    logit_bias: sampling.logitBias.length > 0,
    logprobs: request.topLogprobs !== undefined,
    ignore_eos: request.ignoreEos,
    continue_final_message: request.continuesFinal,
    reasoning_effort: reasoning_effort !== undefined,
    'chat_template_kwargs.enable_thinking': request.enableThinking !== undefined,
    chat_template_kwargs: Object.keys(variables).length > 0,
    tool_choice: tools.length > 0 && toolChoice.mode === 'required',
    parallel_tool_calls: tools.length > 0 && request.parallelCalls === false,
    'tools.function.strict': tools.some(({ strict }) => strict),
    keep_alive: request.keepAliveMs !== undefined,
    backend: request.backend !== 'auto',
    cache_dtype: request.cacheType !== undefined,
    speculation_policy: typeof speculation === 'object' && speculation.policy === 'force',
  };
}
