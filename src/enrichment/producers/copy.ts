import { ServiceError } from '../../protocol/service-error.ts';
import { type Producer, textOf } from './producer.ts';

/** The source itself, as a text of the given type. */
export function copyProducer(contentType: string | undefined): Producer {
  return async (source) => {
    const [only] = source;
    if (source.length === 1 && typeof only === 'object') {
      const { mediaType, base64 } = only;
      return { contentType: mediaType, value: `data:${mediaType};base64,${base64}` };
    }
    const refuse = (mediaType: string) =>
      new ServiceError('invalid_media', `a text cannot hold what is ${mediaType}; name it alone`);
    const value = textOf(source, refuse);
    return value === undefined ? undefined : { contentType: contentType ?? 'text/plain', value };
  };
}
