import { generationRequest, usualSampling } from '../../inference/generation/generation-request.ts';
import { textMessage } from '../../inference/generation/prompt/chat-message.ts';
import type { MediaReference } from '../../inference/media/media-reference.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { contentOf } from '../../inference/providers/remote/remote-output.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { TemplateMedium } from '../media/template-media.ts';
import type { Producer } from './producer.ts';

interface GeneratorOptions {
  readonly model: string;
  /** The instructions of the model beside the source. */
  readonly prompt: string | undefined;
  readonly tokensMax: number;
  readonly temperature: number;
}

/** The text of a model about the source, which is one message of a user. An empty source is not sent. */
export function generatorProducer(
  provider: () => Provider,
  { model, prompt, tokensMax, temperature }: GeneratorOptions,
  contentType: string | undefined,
): Producer {
  return async (source, call) => {
    const text = source.filter((content) => typeof content === 'string').join('');
    const media = source.flatMap((content, at) => (typeof content === 'string' ? [] : referenceTo(content, at)));
    if (text.trim() === '' && media.length === 0) return undefined;
    const messages = [
      ...(prompt === undefined ? [] : [textMessage('system', prompt)]),
      { ...textMessage('user', text), media },
    ];
    const sampling = { ...usualSampling, temperature };
    const request = generationRequest({ model, messages, media, tokensMax, sampling });
    const [output] = await provider().generate(request, call);
    if (output?.finish === 'content_filter') {
      throw new ServiceError('inference_failed', 'the provider of the generator has left out a part of its text');
    }
    const value = output === undefined ? '' : contentOf(output).trim();
    if (value === '') throw new ServiceError('inference_failed', 'the generator wrote nothing');
    return { contentType: contentType ?? 'text/plain', value, truncated: output?.finish === 'length' };
  };
}

export function referenceTo({ mediaType, base64 }: TemplateMedium, at: number): MediaReference {
  return { where: `part ${at + 1} of the source`, mediaType, from: { base64 } };
}
