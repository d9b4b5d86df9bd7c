import { limits } from '../../config/limits.ts';
import type { Finished } from '../../inference/admission.ts';
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

/** What models of an encoder and a decoder do. */
export function seq2seqRoutes(inference: Inference): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/ai/v1/rewrite',
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Rewrite texts: translate, shorten, correct, as the model was trained to',
      body: inferenceBody(rewriteRequestSchema, { bytesMax: limits.inferenceBodyBytesMax }),
      responses: { 200: { description: 'The new texts', schema: rewriteResponseSchema } },
      handler: (context) =>
        admitted(inference, 'rewrite', context, async () => {
          const { model, inputs, max_tokens = tokensMax } = context.body;
          checkTexts(inputs);
          const output = await rewriteTexts(inference, model, inputs, max_tokens, context);
          return answer(output, (text, index) => ({ object: 'rewrite', index, texts: [text] }));
        }),
    }),
    defineRoute({
      method: 'POST',
      path: '/ai/v1/read',
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Read what is written in images',
      body: inferenceBody(readRequestSchema, { bytesMax: limits.generateBodyBytesMax }),
      responses: { 200: { description: 'The text of every image', schema: readResponseSchema } },
      handler: (context) =>
        admitted(inference, 'read', context, async () => {
          const { model, images, prompt, max_tokens = tokensMax } = context.body;
          const references = images.map((image, at) => {
            const part = 'type' in image ? image : { type: 'image_url' as const, image_url: image.url };
            const reference = mediaReference(part, `images[${at}]`);
            if (reference === undefined) throw new ServiceError('invalid_request', `images[${at}] is no image`);
            return reference;
          });
          const request = { images: references, prompt, tokensMax: max_tokens };
          const output = await readImages(inference, model, request, context);
          return answer(output, (text, index) => ({ object: 'read', index, text, fields: {}, regions: [] }));
        }),
    }),
    defineRoute({
      method: 'POST',
      path: '/ai/v1/transcribe',
      access: { inference: 'read' },
      tag: 'Inference',
      summary: 'Write down speech',
      body: inferenceBody(transcribeRequestSchema, { bytesMax: limits.generateBodyBytesMax }),
      responses: { 200: { description: 'What was said', schema: transcribeResponseSchema } },
      handler: (context) =>
        admitted(inference, 'transcribe', context, async () => {
          const { model: name, audio, language: wanted } = context.body;
          const request = { audio: soundReference(audio), language: wanted, translate: false };
          const { model, text, language, tokens } = await transcribeSound(inference, name, request, context);
          const said = { object: 'transcription', index: 0, text, ...(language === undefined ? {} : { language }) };
          return { value: { object: 'list', data: [said], model, usage: usageOf(0, tokens) }, items: 1, tokens };
        }),
    }),
  ];
}

function soundReference(audio: string): MediaReference {
  const inline = /^data:/i.test(audio) ? mediaReference({ type: 'media', url: audio }, 'audio') : undefined;
  return inline ?? { where: 'audio', mediaType: undefined, from: { base64: audio } };
}

function answer(
  { model, texts, promptTokens, completionTokens }: Seq2SeqOutput,
  item: (text: string, index: number) => object,
): Finished<object> {
  const usage = usageOf(promptTokens, completionTokens);
  const value = { object: 'list', data: texts.map(item), model, usage };
  return { value, items: texts.length, tokens: usage.total_tokens };
}
