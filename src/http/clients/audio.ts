import { deflateSync } from 'node:zlib';
import { type TSchema, Type } from '@sinclair/typebox';
import { requireModels } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { Inference } from '../../inference/inference.ts';
import { type Transcribed, transcribeSound } from '../../inference/seq2seq/run-seq2seq.ts';
import {
  type TranscriptionFormat,
  transcriptionFormats,
  transcriptionFormSchema,
  transcriptionSchema,
  translationFormSchema,
  verboseTranscriptionSchema,
} from '../../protocol/clients/audio.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { admitted } from '../inference/admitted.ts';
import { Reply } from '../listener/reply.ts';
import { transcripts } from '../routing/other-content.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { type MultipartForm, readForm } from './multipart-form.ts';
import { subtitles } from './subtitles.ts';

type Task = 'transcribe' | 'translate';

/** Speech to text as the OpenAI interface has it: a form with a file. */
export function audioRoutes(inference: Inference): Route[] {
  const at = (path: '/ai/v1/audio/transcriptions' | '/ai/v1/audio/translations', task: Task, schema: TSchema) =>
    defineRoute({
      method: 'POST',
      path,
      access: { inference: 'read' },
      // The form has to be read for it, which the handler does.
      models: () => [],
      tag: 'Inference',
      summary: task === 'translate' ? 'Write down speech in English' : 'Write down speech',
      description: 'With `response_format` `text`, `srt` or `vtt` the answer is plain text.',
      body: { kind: 'bytes', schema, contentType: 'multipart/form-data', bytesMax: limits.generateBodyBytesMax },
      responses: {
        200: {
          description: 'What was said',
          schema: Type.Union([transcriptionSchema, verboseTranscriptionSchema]),
          also: transcripts,
        },
      },
      handler: (context) =>
        admitted(inference, 'transcribe', context, async () => {
          const { file, model, language, format } = await readRequest(context.body, context.request);
          requireModels(context.caller, [model]);
          const audio = { where: 'file', mediaType: undefined, from: { base64: Buffer.from(file).toString('base64') } };
          const request = { audio, language, translate: task === 'translate' };
          const heard = await transcribeSound(inference, model, request, context);
          return { value: answer(heard, task, format), items: 1, tokens: heard.tokens };
        }),
    });
  return [
    at('/ai/v1/audio/transcriptions', 'transcribe', transcriptionFormSchema),
    at('/ai/v1/audio/translations', 'translate', translationFormSchema),
  ];
}

interface FormRequest {
  readonly file: Uint8Array;
  readonly model: string;
  readonly language: string | undefined;
  readonly format: TranscriptionFormat;
}

async function readRequest(bytes: Uint8Array, request: Request): Promise<FormRequest> {
  const form = await readForm(bytes, request.headers.get('content-type'));
  const file = form.files.get('file');
  if (file === undefined) throw new ServiceError('invalid_request', 'part "file" is missing');
  const model = form.text('model') ?? '';
  if (model === '') throw new ServiceError('invalid_request', 'part "model" is missing');
  const format = form.text('response_format') ?? 'json';
  if (!isFormat(format)) {
    throw new ServiceError('invalid_request', `response_format: there are ${transcriptionFormats.join(', ')}`);
  }
  refuseRest(form);
  return { file, model, language: form.text('language'), format };
}

/** Refuses options that would change the answer and are not supported. */
function refuseRest({ texts, text }: MultipartForm): void {
  const refuse = (name: string, why: string) => {
    throw new ServiceError('invalid_request', `${name}: ${why}`);
  };
  const all = (name: string) => [name, `${name}[]`].flatMap((each) => texts.get(each) ?? []);
  if ((text('prompt') ?? '') !== '') refuse('prompt', 'models are not prompted here; leave it out');
  if (Number(text('temperature') ?? 0) !== 0) refuse('temperature', 'the likeliest words are written; use 0');
  if (text('stream') === 'true') refuse('stream', 'answers are given whole');
  if (all('timestamp_granularities').includes('word')) refuse('timestamp_granularities', 'use segment');
  if (all('include').includes('logprobs')) refuse('include', 'verbose_json has the mean of each segment');
  if (all('known_speaker_names').length > 0) refuse('known_speaker_names', 'speakers are not told apart');
}

/** High for a text that says one thing again and again. */
function compressionRatio(text: string): number {
  const bytes = Buffer.from(text);
  return bytes.length / deflateSync(bytes).length;
}

function isFormat(word: string): word is TranscriptionFormat {
  return transcriptionFormats.some((format) => format === word);
}

function answer(heard: Transcribed, task: Task, format: TranscriptionFormat) {
  const { text, language, duration, segments } = heard;
  const truncated = heard.truncated ? { truncated: true } : {};
  if (format === 'json') return { text, ...truncated, usage: { type: 'duration', seconds: duration } };
  if (format === 'verbose_json') {
    return {
      task,
      language: language ?? null,
      duration,
      text,
      ...truncated,
      segments: segments.map(({ meanLogprob, silenceChance, ...segment }, id) => ({
        id,
        seek: Math.round(segment.start * 100),
        ...segment,
        temperature: 0,
        avg_logprob: meanLogprob,
        compression_ratio: compressionRatio(segment.text),
        ...(silenceChance === undefined ? {} : { no_speech_prob: silenceChance }),
      })),
    };
  }
  const plain = format === 'text' ? `${text}\n` : subtitles(segments, format);
  const mediaType = format === 'vtt' ? 'text/vtt' : 'text/plain';
  return new Reply(200, plain, { 'content-type': `${mediaType}; charset=utf-8` });
}
