import { base64Bytes, decodeBase64Into } from '../../lib/text/base64.ts';
import { ServiceError } from '../../protocol/service-error.ts';

const headCharsMax = 256;

/** Splits `data:TYPE;base64,DATA`; other encodings are refused. The data are not decoded. Throws `invalid_media`. */
export function parseDataUri(uri: string, where: string): { mediaType: string | undefined; base64: string } {
  const comma = uri.slice(0, headCharsMax).indexOf(',');
  const [mediaType = '', ...parameters] = uri.slice('data:'.length, Math.max(comma, 0)).split(';');
  if (comma < 0 || parameters.at(-1)?.toLowerCase() !== 'base64') {
    throw new ServiceError('invalid_media', `${where}: a data URI must read data:TYPE;base64,DATA`);
  }
  return { mediaType: mediaType === '' ? undefined : mediaType, base64: uri.slice(comma + 1) };
}

/** Decodes base64 of the standard alphabet with its padding and nothing else in it. Throws `invalid_media`. */
export function decodeBase64(text: string, where: string): Uint8Array {
  const bytes = new Uint8Array(base64Bytes(text) ?? 0);
  const isStandard = text.length % 4 === 0 && !text.includes('-') && !text.includes('_') && isStrict(text.slice(-4));
  if (isStandard && decodeBase64Into(bytes, text)) return bytes;
  throw new ServiceError('invalid_media', `${where} is not base64`);
}

/** Also in the bits that the last character has too many. */
function isStrict(end: string): boolean {
  try {
    Uint8Array.fromBase64(end, { lastChunkHandling: 'strict' });
    return true;
  } catch {
    return false;
  }
}
