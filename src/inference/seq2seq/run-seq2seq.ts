import { specOfModel } from '../../model-host/model-spec.ts';
import type { Seq2SeqResult } from '../../model-host/operations/seq2seq.ts';
import type { TranscribeResult } from '../../model-host/operations/transcribe.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InferenceCall } from '../admission.ts';
import type { Inference } from '../inference.ts';
import { loadPixels } from '../media/image-pixels.ts';
import type { MediaReference } from '../media/media-reference.ts';

export interface Seq2SeqOutput extends Seq2SeqResult {
  /** The model that was used. */
  readonly model: string;
}

/** Rewrites each text as the model was trained to: translated, shortened, corrected. Throws `ServiceError`. */
export async function rewriteTexts(
  { models, pool, settings }: Inference,
  name: string,
  texts: readonly string[],
  tokensMax: number,
  call: InferenceCall,
): Promise<Seq2SeqOutput> {
  const model = models.require('rewriters', name);
  const input = { sources: texts, prompt: undefined, tokensMax };
  return { model: model.name, ...(await pool.run(specOfModel(model, settings), 'seq2seq', input, call)) };
}

/** Reads what is written in images. Throws `ServiceError`. */
export async function readImages(
  inference: Inference,
  name: string,
  request: { images: readonly MediaReference[]; prompt: string | undefined; tokensMax: number },
  call: InferenceCall,
): Promise<Seq2SeqOutput> {
  const model = inference.models.require('readers', name);
  const sources = await loadPixels(inference, model, request.images, call.signal);
  const input = { sources, prompt: request.prompt, tokensMax: request.tokensMax };
  const spec = specOfModel(model, inference.settings);
  return { model: model.name, ...(await inference.pool.run(spec, 'seq2seq', input, call)) };
}

export interface Transcribed extends TranscribeResult {
  readonly model: string;
}

/** Writes down what is said. Throws `ServiceError`. */
export async function transcribeSound(
  { models, media, pool, settings }: Inference,
  name: string,
  request: { audio: MediaReference; language: string | undefined; translate: boolean },
  call: InferenceCall,
): Promise<Transcribed> {
  const model = models.require('transcribers', name);
  const [sound] = await media.load([request.audio], call.signal);
  if (sound?.mediaType !== 'audio/wav') {
    throw new ServiceError('model_not_supported', `the sound is ${sound?.mediaType}; sounds are read from WAV files`);
  }
  const input = { audio: sound.bytes, language: request.language, translate: request.translate };
  return { model: model.name, ...(await pool.run(specOfModel(model, settings), 'transcribe', input, call)) };
}
