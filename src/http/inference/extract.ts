import { limits } from '../../config/limits.ts';
import type { Finished, InferenceCall } from '../../inference/admission.ts';
import { type Extracted, extractTexts } from '../../inference/extraction/extract-texts.ts';
import type { Extraction, ExtractionSchema } from '../../inference/extraction/extraction-schema.ts';
import { extractionSchema, flatSchema, isFlat } from '../../inference/extraction/requested-schema.ts';
import { shownExtraction, shownStructures } from '../../inference/extraction/shown-extraction.ts';
import type { Inference } from '../../inference/inference.ts';
import { type MediaReference, mediaReference } from '../../inference/media/media-reference.ts';
import { readImages, type Seq2SeqOutput } from '../../inference/seq2seq/run-seq2seq.ts';
import { must } from '../../lib/assert.ts';
import { partsOf } from '../../protocol/inference/content-parts.ts';
import {
  classifyRequestSchema,
  type ExtractBody,
  extractRequestSchema,
  extractResponseSchema,
  recognizeRequestSchema,
} from '../../protocol/inference/extract.ts';
import { usageOf } from '../../protocol/inference/usage.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { admitted } from './admitted.ts';
import { inferenceBody } from './inference-body.ts';
import { checkTexts } from './texts-of-request.ts';

const bytesMax = limits.inferenceBodyBytesMax;
/** Of what a reader writes about one image. */
const readTokensMax = 1_024;
const responses = { 200: { description: 'What every input holds', schema: extractResponseSchema } };

interface Wanted {
  readonly model: string;
  readonly texts: readonly string[];
  readonly ids: readonly (string | undefined)[];
  /** Whether the text of an image was cut, by input; none was where it is missing. */
  readonly cut?: readonly boolean[];
  readonly schema: ExtractionSchema;
  readonly options: NonNullable<ExtractBody['options']>;
  /** Answers `results` with bare values, as clients of the older form know it. */
  readonly older: boolean;
}

export function extractRoutes(inference: Inference): Route[] {
  const route = { method: 'POST', access: { inference: 'read' }, tag: 'Inference', responses } as const;
  return [
    defineRoute({
      ...route,
      path: '/ai/v1/extract',
      summary: 'Find entities, relations, classes and records in texts',
      description:
        'An extractor finds entities. A generator finds everything: its output is held to the schema while it decodes, and entities that do not stand in the text are left out.',
      body: inferenceBody(extractRequestSchema, { bytesMax: limits.generateBodyBytesMax }),
      models: ({ model, options }) => (options?.reader === undefined ? [model] : [model, options.reader.model]),
      handler: (context) =>
        admitted(inference, 'extract', context, async () => {
          const { body } = context;
          const asked = wanted(body);
          const read = body.texts === undefined ? await textsOf(inference, body, context) : { texts: body.texts };
          return await extract(inference, { ...asked, ...read }, context);
        }),
    }),
    defineRoute({
      ...route,
      path: '/ai/v1/recognize',
      summary: 'Find entities in texts, and relations between them',
      body: inferenceBody(recognizeRequestSchema, { bytesMax }),
      models: ({ model }) => [model],
      handler: (context) =>
        admitted(inference, 'extract', context, () => {
          const { model, texts, labels, relation_labels = [] } = context.body;
          const schema = extractionSchema({ entities: labels, relations: relation_labels.map((type) => ({ type })) });
          return extract(inference, { model, texts, schema, ids: [], options: {}, older: false }, context);
        }),
    }),
    defineRoute({
      ...route,
      path: '/ai/v1/classify',
      summary: 'Say which labels fit texts',
      body: inferenceBody(classifyRequestSchema, { bytesMax }),
      models: ({ model }) => [model],
      handler: (context) =>
        admitted(inference, 'extract', context, () => {
          const { model, texts, labels, multi_label } = context.body;
          const schema = extractionSchema({
            classifications: [{ name: 'label', labels, multi_label: multi_label ?? false }],
          });
          return extract(inference, { model, texts, schema, ids: [], options: {}, older: false }, context);
        }),
    }),
  ];
}

function wanted({ model, inputs, texts, schema, options = {} }: ExtractBody): Omit<Wanted, 'texts'> {
  if ((inputs === undefined) === (texts === undefined)) {
    throw new ServiceError('invalid_request', 'one of "inputs" and "texts" has to be given');
  }
  const older = isFlat(schema);
  if (older && texts === undefined) {
    const [name] = Object.keys(schema);
    throw new ServiceError(
      'invalid_request',
      `unknown member "schema.${name}"; there are entities, relations, classifications and structures`,
    );
  }
  return {
    model,
    ids: (inputs ?? []).map(({ id }) => id),
    schema: older ? flatSchema(schema) : extractionSchema(schema),
    options,
    older,
  };
}

/** Texts of the inputs, line by line; a reader transcribes the images among them. */
async function textsOf(
  inference: Inference,
  { inputs = [], options }: ExtractBody,
  call: InferenceCall,
): Promise<Pick<Wanted, 'texts' | 'cut'>> {
  const images: MediaReference[] = [];
  const pieces = inputs.map(({ content }, input) => {
    return partsOf(content).map((part, at) => {
      if (part.type === 'text') return part.text;
      const image = mediaReference(part, `inputs[${input}].content[${at}]`);
      return images.push(must(image, 'a part that is not text refers to media')) - 1;
    });
  });
  const read = await readTexts(inference, images, options?.reader?.model, call);
  return {
    texts: pieces.map((each) =>
      each.map((piece) => (typeof piece === 'string' ? piece : (read.texts[piece] ?? ''))).join('\n'),
    ),
    cut: pieces.map((each) => each.some((piece) => typeof piece === 'number' && read.truncated[piece] === true)),
  };
}

async function readTexts(
  inference: Inference,
  images: readonly MediaReference[],
  reader: string | undefined,
  call: InferenceCall,
): Promise<Pick<Seq2SeqOutput, 'texts' | 'truncated'>> {
  const [first] = images;
  if (first === undefined) return { texts: [], truncated: [] };
  if (reader === undefined) {
    throw new ServiceError(
      'model_not_supported',
      `${first.where}: texts are read; name a reader in options.reader.model`,
    );
  }
  return await readImages(inference, reader, { images, prompt: undefined, tokensMax: readTokensMax }, call);
}

async function extract(inference: Inference, wanted: Wanted, call: InferenceCall): Promise<Finished<object>> {
  const { model, texts, schema, options } = wanted;
  checkTexts(texts);
  const request = { model, texts, schema, threshold: options.threshold, flat: options.flat_ner ?? true };
  const extracted = await extractTexts(inference, request, call);
  const tokens = extracted.promptTokens + extracted.completionTokens;
  return { value: answerOf(extracted, wanted), items: texts.length, tokens };
}

function answerOf(
  { model, extractions, promptTokens, completionTokens, cachedTokens }: Extracted,
  wanted: Wanted,
): object {
  return {
    object: 'extraction',
    model,
    data: extractions.map((extraction, index) => {
      const id = wanted.ids[index];
      const text = wanted.texts[index] ?? '';
      const truncated = extraction.truncated || wanted.cut?.[index] === true ? { truncated: true } : {};
      return { ...(id === undefined ? {} : { id }), index, ...findings(extraction, text, wanted), ...truncated };
    }),
    usage: usageOf(promptTokens, completionTokens, cachedTokens),
  };
}

function findings(extraction: Extraction, text: string, { schema, options, older }: Wanted): object {
  if (older) return { results: shownStructures(extraction, (found) => found.value) };
  return shownExtraction(extraction, text, schema, {
    scores: options.include_confidence ?? false,
    spans: options.include_spans ?? false,
  });
}
