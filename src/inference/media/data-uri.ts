import { base64Bytes, decodeBase64Into } from '../../lib/text/base64.ts';
import { ServiceError } from '../../protocol/service-error.ts';

const headCharsMax = 256;

/**
 * Splits `data:TYPE;base64,DATA`, whose data are not decoded, and `data:TYPE,TEXT` with its percent escapes (RFC 2397).
 * Throws `invalid_media`.
 */
export function parseDataUri(uri: string, where: string): { mediaType: string | undefined; base64: string } {
  const comma = uri.slice(0, headCharsMax).indexOf(',');
  const [mediaType = '', ...parameters] = uri.slice('data:'.length, Math.max(comma, 0)).split(';');
  if (comma < 0) {
    throw new ServiceError('invalid_media', `${where}: a data URI must read data:TYPE;base64,DATA or data:TYPE,TEXT`);
  }
  const data = uri.slice(comma + 1);
  const isBase64 = parameters.at(-1)?.toLowerCase() === 'base64';
  return { mediaType: mediaType === '' ? undefined : mediaType, base64: isBase64 ? data : unescaped(data) };
}

/** The bytes of a text with percent escapes, as base64. */
function unescaped(text: string): string {
  const bytes = Buffer.from(text).toString('latin1');
  const resolved = bytes.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  return Buffer.from(resolved, 'latin1').toString('base64');
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
