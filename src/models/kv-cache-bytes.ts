import type { GgufHeader } from './headers/gguf-header.ts';

/** Keys and values are kept in sixteen bits unless a request asks for something else. */
const bytesPerNumber = 2;

/**
 * Memory that a generator keeps for each token of a context: keys and values of every layer, in bytes. 0 where the file
 * does not say how it is built.
 */
export function kvCacheBytesPerToken({ values }: GgufHeader): number {
  const architecture = values.get('general.architecture');
  const own = (key: string) => {
    const value = values.get(`${String(architecture)}.${key}`);
    return typeof value === 'number' && value > 0 ? value : 0;
  };
  const heads = own('attention.head_count');
  const width = heads === 0 ? 0 : own('embedding_length') / heads;
  const keyed = own('attention.head_count_kv') || heads;
  const numbers = (own('attention.key_length') || width) + (own('attention.value_length') || width);
  return own('block_count') * keyed * numbers * bytesPerNumber;
}
