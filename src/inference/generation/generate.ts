import { must } from '../../lib/assert.ts';
import type { LoadedInfo } from '../../model-host/backend.ts';
import type { ModelProcess } from '../../model-host/model-process.ts';
import { specOfModel } from '../../model-host/model-spec.ts';
import type { GenerateEvent, GenerateInput, GenerateResult } from '../../model-host/operations/generate.ts';
import type { Priority } from '../../model-host/priority.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import type { FinishReason } from '../../protocol/inference/finish-reasons.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Inference } from '../inference.ts';
import type { GenerationWatch } from './generation-metrics.ts';
import type { GenerationRequest } from './generation-request.ts';
import { outputConstraint } from './output-constraint.ts';
import { type OutputDelta, OutputParser } from './output-parser.ts';
import { chatPrompt } from './prompt/chat-prompt.ts';
import { type RenderedPrompt, rawPrompt } from './prompt/raw-prompt.ts';

export type GenerationDeps = Pick<Inference, 'models' | 'pool' | 'templates' | 'settings' | 'backends' | 'generations'>;

/** The models that a request names, found and able to do what it asks. */
export interface GenerationModels {
  readonly model: InstalledModel;
  readonly draft: InstalledModel | undefined;
}

/** A request made ready for its model. */
export interface PreparedGeneration {
  readonly input: GenerateInput;
  /** A fresh parser for one output. */
  readonly newParser: () => OutputParser;
}

export interface GenerationOptions {
  readonly signal: AbortSignal;
  readonly priority?: Priority;
  /** Called for every piece of a streamed output; `choice` is its place among the answers. */
  readonly onPiece?: (choice: number, deltas: readonly OutputDelta[], logprobs: GenerateEvent['logprobs']) => void;
}

export interface GenerationOutput {
  readonly result: GenerateResult;
  /** The pieces that were not given to `onPiece`. */
  readonly deltas: readonly OutputDelta[];
  readonly finish: FinishReason;
}

/** Throws `ServiceError` that names the member of the request which the model cannot honour. */
export function findModels(
  request: GenerationRequest,
  deps: Pick<GenerationDeps, 'models' | 'backends'>,
): GenerationModels {
  const model = deps.models.require('generators', request.model);
  if (model.backend !== 'native') {
    throw unable(model, 'model', 'only generators in GGUF files can be run here');
  }
  const { backend, speculation } = request;
  const usable = ['auto', 'native', ...(['metal', 'cuda'] as const).filter((each) => deps.backends[each])];
  if (!usable.includes(backend)) throw unable(model, 'backend', `${backend} cannot run it; use ${usable.join(' or ')}`);
  const [medium] = request.media;
  if (medium !== undefined) throw unable(model, medium.where, 'it takes text alone');
  const draftName = typeof speculation === 'string' ? undefined : speculation.draftModel;
  return { model, draft: draftName === undefined ? undefined : deps.models.require('generators', draftName) };
}

function unable({ name }: InstalledModel, member: string, why: string): ServiceError {
  return new ServiceError('model_not_supported', `${member}: the model "${name}" cannot do this: ${why}`);
}

/** Renders the prompt and compiles what the output is held to. */
export async function prepareGeneration(
  request: GenerationRequest,
  { model, draft }: GenerationModels,
  info: LoadedInfo,
  { templates }: Pick<Inference, 'templates'>,
): Promise<PreparedGeneration> {
  const prompt: RenderedPrompt =
    request.prompt === undefined
      ? await chatPrompt(request, model.manifest.chat_template, info, templates)
      : rawPrompt(request.prompt, info);
  const { speculation } = request;
  const input: GenerateInput = {
    prompt: prompt.pieces,
    tokensMax: request.tokensMax ?? must(info.contextTokens, 'a generator has a context'),
    stop: [...request.stop, ...prompt.stop],
    ignoreEos: request.ignoreEos,
    sampling: request.sampling,
    constraint: outputConstraint(request, prompt),
    topLogprobs: request.topLogprobs,
    promptCache: request.promptCache,
    cacheType: request.cacheType,
    speculation:
      typeof speculation === 'string' ? undefined : { policy: speculation.policy, draft, tokens: speculation.tokens },
    stream: request.stream,
    echo: prompt.echo,
  };
  const newParser = () =>
    new OutputParser({
      plain: request.prompt !== undefined,
      thinking: prompt.thinking === 'open',
      calls: request.tools.length > 0 ? prompt.calls : undefined,
      functions: request.tools.map(({ name }) => name),
    });
  return { input, newParser };
}

/** Generates one answer. Throws as `generateChoices`. */
export async function generate(
  request: GenerationRequest,
  deps: GenerationDeps,
  options: GenerationOptions,
): Promise<GenerationOutput> {
  const [output] = await generateChoices({ ...request, choices: 1 }, deps, options);
  return must(output, 'one answer was asked for');
}

/**
 * Generates the answers of a request from one prompt, side by side. Throws `ServiceError`, or what the signal was aborted
 * with. With `onPiece` each output arrives there, in order and before the promise settles.
 */
export async function generateChoices(
  request: GenerationRequest,
  deps: GenerationDeps,
  options: GenerationOptions,
): Promise<readonly GenerationOutput[]> {
  const models = findModels(request, deps);
  // The thread that renders templates starts up while the model is loaded.
  if (!deps.pool.isLoaded(models.model)) deps.templates.render('', {}).catch(() => undefined);
  const watches = Array.from({ length: request.choices }, () => deps.generations.begin(models.model.name));
  // One that fails ends the others.
  const stop = new AbortController();
  const signal = request.choices === 1 ? options.signal : AbortSignal.any([options.signal, stop.signal]);
  try {
    const outputs = await deps.pool.use(
      specOfModel(models.model, deps.settings),
      async (process, info) => {
        const prepared = await prepareGeneration(request, models, info, deps);
        return await Promise.all(choicesOf(prepared, watches, process, { ...options, signal }));
      },
      { ...options, keepAliveMs: request.keepAliveMs },
    );
    for (const [at, { result, finish }] of outputs.entries()) watches[at]?.finished(result, finish);
    return outputs;
  } catch (error) {
    stop.abort(error);
    for (const watch of watches) watch.failed(options.signal.aborted);
    throw error;
  }
}

/** One output for each watch. All but the first start once its prompt has been read, from a copy of that state. */
function choicesOf(
  { input, newParser }: PreparedGeneration,
  watches: readonly GenerationWatch[],
  process: ModelProcess,
  options: GenerationOptions,
): Promise<GenerationOutput>[] {
  const read = Promise.withResolvers<void>();
  const one = async (watch: GenerationWatch, choice: number): Promise<GenerationOutput> => {
    if (choice > 0) await read.promise;
    const { seed } = input.sampling;
    const sampling = seed === undefined ? input.sampling : { ...input.sampling, seed: seed + choice };
    const tellsPromptRead = choice === 0 && watches.length > 1;
    const parser = newParser();
    const onEvent = ({ text, logprobs }: GenerateEvent) => {
      read.resolve();
      if (text === '' && logprobs === undefined) return;
      watch.token();
      options.onPiece?.(choice, parser.push(text), logprobs);
    };
    const result = await process.run('generate', { ...input, sampling, tellsPromptRead }, { ...options, onEvent });
    return finished(result, parser);
  };
  const outputs = watches.map(one);
  // Without an event from the first one, its end lets the others go.
  outputs[0]?.then(() => read.resolve(), read.reject);
  read.promise.catch(() => undefined);
  return outputs;
}

/** The meaning of an output's rest, and why it ended. */
export function finished(result: GenerateResult, parser: OutputParser): GenerationOutput {
  const read = parser.push(result.text);
  // A call that ends behind the last argument has only lost the end of its mark; one that a stop text cuts is none.
  const ended = result.finish === 'stop' && result.stopText === undefined;
  const called = parser.callCount > 0 && (ended || parser.callsAreWhole);
  const deltas = [...read, ...parser.finish()];
  return { result, deltas, finish: called ? 'tool_calls' : result.finish };
}

/** Tokens of all answers to one prompt, which counts once. */
export function totalOf(
  outputs: readonly GenerationOutput[],
): Pick<GenerateResult, 'promptTokens' | 'cachedTokens' | 'completionTokens'> {
  const { result } = must(outputs[0], 'there is an answer at least');
  const completionTokens = outputs.reduce((sum, output) => sum + output.result.completionTokens, 0);
  return { promptTokens: result.promptTokens, cachedTokens: result.cachedTokens, completionTokens };
}
