import type { Static, TSchema } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import type { Finished, InferenceCall } from '../../inference/admission.ts';
import type { Inference } from '../../inference/inference.ts';
import { type MediaReference, mediaReference } from '../../inference/media/media-reference.ts';
import { readImages, rewriteTexts, type Seq2SeqOutput, transcribeSound } from '../../inference/seq2seq/run-seq2seq.ts';
import {
  readRequestSchema,
  readResponseSchema,
  rewriteRequestSchema,
  rewriteResponseSchema,
  transcribeRequestSchema,
  transcribeResponseSchema,
} from '../../protocol/inference/seq2seq.ts';
import { usageOf } from '../../protocol/inference/usage.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { admitted } from './admitted.ts';
import { inferenceBody } from './inference-body.ts';
import { checkTexts } from './texts-of-request.ts';

const tokensMax = 256;

/** The route of models with an encoder and a decoder. */
export function seq2seqRoutes(inference: Inference): Route[] {
  return [rewriteRoute(inference), readRoute(inference), transcribeRoute(inference)];
}

function rewriteRoute(inference: Inference): Route {
  const route: Seq2SeqRoute<typeof rewriteRequestSchema> = {
    operation: 'rewrite',
    summary: 'Rewrite texts: translate, shorten, correct, as the model was trained to',
    request: rewriteRequestSchema,
    bytesMax: limits.inferenceBodyBytesMax,
    response: { description: 'The new texts', schema: rewriteResponseSchema },
  };
  return seq2seqRoute(inference, route, async ({ model, inputs, max_tokens = tokensMax }, call) => {
    checkTexts(inputs);
    const output = await rewriteTexts(inference, model, inputs, max_tokens, call);
    return answer(output, (text, index) => ({ object: 'rewrite', index, texts: [text] }));
  });
}

function readRoute(inference: Inference): Route {
  const route: Seq2SeqRoute<typeof readRequestSchema> = {
    operation: 'read',
    summary: 'Read what is written in images',
    request: readRequestSchema,
    bytesMax: limits.generateBodyBytesMax,
    response: { description: 'The text of every image', schema: readResponseSchema },
  };
  return seq2seqRoute(inference, route, async ({ model, images, prompt, max_tokens = tokensMax }, call) => {
    const references = images.map((image, at) => {
      const part = 'type' in image ? image : { type: 'image_url' as const, image_url: image.url };
      const reference = mediaReference(part, `images[${at}]`);
      if (reference === undefined) throw new ServiceError('invalid_request', `images[${at}] is not an image`);
      return reference;
    });
    const request = { images: references, prompt, tokensMax: max_tokens };
    const output = await readImages(inference, model, request, call);
    return answer(output, (text, index) => ({ object: 'read', index, text, fields: {}, regions: [] }));
  });
}

function transcribeRoute(inference: Inference): Route {
  const route: Seq2SeqRoute<typeof transcribeRequestSchema> = {
    operation: 'transcribe',
    summary: 'Write down speech',
    request: transcribeRequestSchema,
    bytesMax: limits.generateBodyBytesMax,
    response: { description: 'What was said', schema: transcribeResponseSchema },
  };
  return seq2seqRoute(inference, route, async ({ model: name, audio, language: wanted }, call) => {
    const request = { audio: soundReference(audio), language: wanted, translate: false };
    const { model, text, language, tokens, truncated } = await transcribeSound(inference, name, request, call);
    const heard = { text, ...(language === undefined ? {} : { language }) };
    const said = { object: 'transcription', index: 0, ...heard, ...(truncated ? { truncated } : {}) };
    return { value: { object: 'list', data: [said], model, usage: usageOf(0, tokens) }, items: 1, tokens };
  });
}

interface Seq2SeqRoute<Schema extends TSchema> {
  /** Also the end of the path. */
  readonly operation: 'rewrite' | 'read' | 'transcribe';
  readonly summary: string;
  readonly request: Schema;
  readonly bytesMax: number;
  readonly response: { readonly description: string; readonly schema: TSchema };
}

function seq2seqRoute<Schema extends TSchema>(
  inference: Inference,
  { operation, summary, request, bytesMax, response }: Seq2SeqRoute<Schema>,
  work: (body: Static<Schema>, call: InferenceCall) => Promise<Finished<object>>,
): Route {
  return defineRoute({
    method: 'POST',
    path: `/ai/v1/${operation}`,
    access: { inference: 'read' },
    models: (body) => [(body as { model: string }).model],
    tag: 'Inference',
    summary,
    body: inferenceBody(request, { bytesMax }),
    responses: { 200: response },
    handler: (context) => admitted(inference, operation, context, () => work(context.body as Static<Schema>, context)),
  });
}

function soundReference(audio: string): MediaReference {
  const inline = /^data:/i.test(audio) ? mediaReference({ type: 'media', url: audio }, 'audio') : undefined;
  return inline ?? { where: 'audio', mediaType: undefined, from: { base64: audio } };
}

function answer(
  { model, texts, truncated, promptTokens, completionTokens }: Seq2SeqOutput,
  item: (text: string, index: number) => object,
): Finished<object> {
  const usage = usageOf(promptTokens, completionTokens);
  const data = texts.map((text, at) => ({ ...item(text, at), ...(truncated[at] === true ? { truncated: true } : {}) }));
  const value = { object: 'list', data, model, usage };
  return { value, items: texts.length, tokens: usage.total_tokens };
}
