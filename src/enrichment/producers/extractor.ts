import type { ExtractionSchema } from '../../inference/extraction/extraction-schema.ts';
import { shownExtraction } from '../../inference/extraction/shown-extraction.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type Producer, textOf } from './producer.ts';

interface ExtractorOptions {
  readonly model: string;
  readonly schema: ExtractionSchema;
  readonly threshold: number | undefined;
  readonly flat: boolean;
  readonly scores: boolean;
  readonly spans: boolean;
}

/** The findings that the schema asks for in the text of the source, as JSON. */
export function extractorProducer(
  provider: () => Provider,
  { model, schema, threshold, flat, ...shown }: ExtractorOptions,
): Producer {
  return async (source, call) => {
    const extractor = provider();
    if (extractor.extract === undefined)
      throw new ServiceError('model_not_supported', 'this provider extracts nothing');
    const refuse = (mediaType: string) => new ServiceError('invalid_media', `texts are read, not ${mediaType}`);
    const text = textOf(source, refuse);
    if (text === undefined) return undefined;
    const { extractions } = await extractor.extract({ model, texts: [text], schema, threshold, flat }, call);
    const [extraction] = extractions;
    if (extraction === undefined) throw new ServiceError('inference_failed', 'the extractor answered nothing');
    const truncated = extraction.truncated ? { truncated: true } : {};
    const value = { ...shownExtraction(extraction, text, schema, shown), ...truncated };
    return { contentType: 'application/json', value, ...truncated };
  };
}
