import type { Provider } from '../../inference/providers/provider.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { referenceTo } from './generator.ts';
import type { Producer } from './producer.ts';

interface ReaderOptions {
  readonly model: string;
  readonly prompt: string | undefined;
  readonly tokensMax: number;
}

/** The source with what is written in its images in their places. */
export function readerProducer(provider: () => Provider, { model, prompt, tokensMax }: ReaderOptions): Producer {
  return async (source, call) => {
    const reader = provider();
    if (reader.read === undefined) throw new ServiceError('model_not_supported', 'this provider reads no images');
    const images = source.flatMap((content, at) => (typeof content === 'string' ? [] : referenceTo(content, at)));
    const sound = images.find(({ mediaType }) => !mediaType?.startsWith('image/'));
    if (sound !== undefined) throw new ServiceError('invalid_media', `${sound.where} is ${sound.mediaType}, no image`);
    const texts = images.length === 0 ? [] : await reader.read({ model, images, prompt, tokensMax }, call);
    let next = 0;
    const pieces = source.map((content) => {
      if (typeof content === 'string') return content;
      next += 1;
      return texts[next - 1]?.text ?? '';
    });
    const value = pieces.join('').trim();
    const truncated = texts.some((text) => text.truncated);
    return value === '' ? undefined : { contentType: 'text/plain', value, truncated };
  };
}
