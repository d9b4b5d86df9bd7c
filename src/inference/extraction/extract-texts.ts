import { allOrStop } from '../../lib/concurrency/all-or-stop.ts';
import { specOfModel } from '../../model-host/model-spec.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import type { ErrorCode } from '../../protocol/error-codes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InferenceCall } from '../admission.ts';
import { generate } from '../generation/generate.ts';
import { generationRequest, usualSampling } from '../generation/generation-request.ts';
import { textMessage } from '../generation/prompt/chat-message.ts';
import type { Inference } from '../inference.ts';
import { extractionPrompt } from './extraction-prompt.ts';
import { type Extraction, type ExtractionSchema, partsOf } from './extraction-schema.ts';
import { outputSchema } from './output-schema.ts';
import { readOutput } from './read-output.ts';

export interface ExtractRequest {
  /** An extractor, or a generator. */
  readonly model: string;
  readonly texts: readonly string[];
  readonly schema: ExtractionSchema;
  /** How sure the model has to be; undefined leaves it to the kind of model. */
  readonly threshold: number | undefined;
  /** No two entities overlap. */
  readonly flat: boolean;
}

export interface Extracted {
  readonly model: string;
  /** For each text. */
  readonly extractions: readonly Extraction[];
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Tokens of prompts whose state was there already. */
  readonly cachedTokens: number;
}

/** Of an extractor; a generator is taken at its word. */
const extractorThreshold = 0.3;
const outputTokensMax = 2_048;

/** Finds what the schema asks for in every text. Throws `ServiceError`. */
export async function extractTexts(
  inference: Inference,
  request: ExtractRequest,
  call: InferenceCall,
): Promise<Extracted> {
  const model = requireEither(inference, request.model);
  return model.kind === 'extractors'
    ? await bySpans(inference, model, request, call)
    : await byGeneration(inference, model, request, call);
}

/** There is no model of the name, or one of another kind. */
const absent: readonly ErrorCode[] = ['model_not_found', 'model_not_supported'];

function requireEither({ models }: Inference, name: string): InstalledModel {
  const failsWith = (error: unknown, codes: readonly ErrorCode[]) =>
    error instanceof ServiceError && codes.includes(error.code);
  try {
    return models.require('extractors', name);
  } catch (error) {
    if (!failsWith(error, [...absent, 'model_load_failed'])) throw error;
    try {
      return models.require('generators', name);
    } catch (other) {
      throw failsWith(other, absent) ? error : other;
    }
  }
}

async function bySpans(
  { pool, settings }: Inference,
  model: InstalledModel,
  { texts, schema, threshold, flat }: ExtractRequest,
  call: InferenceCall,
): Promise<Extracted> {
  const beyond = partsOf(schema).filter((part) => part !== 'entities');
  if (beyond.length > 0) {
    throw new ServiceError(
      'model_not_supported',
      `the model "${model.name}" finds entities only, not ${beyond.join(', ')}; a generator can be named for these`,
    );
  }
  const labels = schema.entities;
  const input = { texts, labels, threshold: threshold ?? extractorThreshold, flat };
  const { entities, tokens } = await pool.run(specOfModel(model, settings), 'tagEntities', input, call);
  const extractions = entities.map((found) => ({
    entities: found.map(({ label, ...span }) => ({ label: labels[label] ?? '', ...span })),
    relations: [],
    classifications: [],
    structures: {},
  }));
  return { model: model.name, extractions, promptTokens: tokens, completionTokens: 0, cachedTokens: 0 };
}

async function byGeneration(
  inference: Inference,
  model: InstalledModel,
  { texts, schema, threshold }: ExtractRequest,
  call: InferenceCall,
): Promise<Extracted> {
  const format = { kind: 'json_schema', schema: outputSchema(schema), strict: false } as const;
  const system = extractionPrompt(schema);
  const thinks = model.manifest.capabilities.includes('reasoning');
  const one = async (text: string, at: number, signal: AbortSignal) => {
    const request = generationRequest({
      model: model.name,
      messages: [textMessage('system', system), textMessage('user', text)],
      tokensMax: outputTokensMax,
      sampling: { ...usualSampling, temperature: 0 },
      format,
      topLogprobs: 0,
      enableThinking: thinks ? false : undefined,
    });
    const { result, deltas } = await generate(request, inference, { ...call, signal }).catch((error: unknown) => {
      throw texts.length === 1 ? error : faultOfInput(at, error);
    });
    const output = deltas.map((delta) => (delta.kind === 'content' ? delta.text : '')).join('');
    const extraction = {
      ...readOutput(output, result.logprobs, text, schema),
      ...(result.finish === 'length' ? { truncated: true } : {}),
    };
    return { extraction: threshold === undefined ? extraction : above(extraction, threshold), result };
  };
  const done: Awaited<ReturnType<typeof one>>[] = [];
  const { parallelSequences } = inference.settings;
  for (let at = 0; at < texts.length; at += parallelSequences) {
    const together = texts.slice(at, at + parallelSequences);
    done.push(
      ...(await allOrStop(call.signal, (signal) => together.map((text, place) => one(text, at + place, signal)))),
    );
  }
  return {
    model: model.name,
    extractions: done.map(({ extraction }) => extraction),
    promptTokens: done.reduce((sum, { result }) => sum + result.promptTokens, 0),
    completionTokens: done.reduce((sum, { result }) => sum + result.completionTokens, 0),
    cachedTokens: done.reduce((sum, { result }) => sum + result.cachedTokens, 0),
  };
}

/** A text that is too long is named: it fails all of them. */
function faultOfInput(at: number, error: unknown): unknown {
  if (!(error instanceof ServiceError && error.code === 'context_length_exceeded')) return error;
  return new ServiceError(error.code, `input ${at}: ${error.message}`, { cause: error });
}

/** The findings of which the model was sure enough. Relations keep the places of their ends. */
function above(extraction: Extraction, threshold: number): Extraction {
  const { entities, relations, classifications } = extraction;
  const kept = entities.filter(({ score }) => score >= threshold);
  const place = (at: number) => {
    const entity = entities[at];
    return entity === undefined ? -1 : kept.indexOf(entity);
  };
  return {
    ...extraction,
    entities: kept,
    relations: relations
      .filter(({ score }) => score >= threshold)
      .map((relation) => ({ ...relation, source: place(relation.source), target: place(relation.target) }))
      .filter(({ source, target }) => source >= 0 && target >= 0),
    classifications: classifications.filter(({ score }) => score >= threshold),
  };
}
