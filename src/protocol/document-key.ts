import { ServiceError } from './service-error.ts';

/** Bytes of UTF-8. */
export const documentKeyBytesMax = 1024;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a key may not have
const control = /[\u0000-\u001f\u007f]/;

/** The key when it may be one (1 to 1024 bytes of UTF-8, no control characters, no lone surrogate), else `invalid_key`. */
export function checkDocumentKey(key: string): string {
  if (key.length === 0) throw new ServiceError('invalid_key', 'a document key is empty');
  if (key.length > documentKeyBytesMax || Buffer.byteLength(key) > documentKeyBytesMax) {
    throw new ServiceError('invalid_key', `a document key is longer than ${documentKeyBytesMax} bytes`);
  }
  if (control.test(key)) throw new ServiceError('invalid_key', 'a document key has a control character');
  if (!key.isWellFormed()) throw new ServiceError('invalid_key', 'a document key has a lone surrogate');
  return key;
}
