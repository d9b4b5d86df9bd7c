import type { Provider } from '../../inference/providers/provider.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { referenceTo } from './generator.ts';
import type { Producer } from './producer.ts';

interface TranscriberOptions {
  readonly model: string;
  readonly language: string | undefined;
}

/** The source with what is said in its sounds in their places. */
export function transcriberProducer(provider: () => Provider, { model, language }: TranscriberOptions): Producer {
  return async (source, call) => {
    const transcriber = provider();
    if (transcriber.transcribe === undefined) {
      throw new ServiceError('model_not_supported', 'this provider writes down no speech');
    }
    const pieces: string[] = [];
    let isCut = false;
    for (const [at, content] of source.entries()) {
      if (typeof content === 'string') {
        pieces.push(content);
        continue;
      }
      const audio = referenceTo(content, at);
      if (!content.mediaType.startsWith('audio/')) {
        throw new ServiceError('invalid_media', `${audio.where} is ${content.mediaType}, no sound`);
      }
      const { text, truncated } = await transcriber.transcribe({ model, audio, language }, call);
      pieces.push(text);
      isCut ||= truncated;
    }
    const value = pieces.join('').trim();
    return value === '' ? undefined : { contentType: 'text/plain', value, truncated: isCut };
  };
}
