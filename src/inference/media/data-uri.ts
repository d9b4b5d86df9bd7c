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
  // Ten times as fast as the strict decoder; what it skips is missing at the end.
  const bytes = Buffer.from(text, 'base64');
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const isWhole = text.length % 4 === 0 && bytes.byteLength === (text.length / 4) * 3 - padding;
  if (isWhole && !text.includes('-') && !text.includes('_') && isStrict(text.slice(-4))) return bytes;
  throw new ServiceError('invalid_media', `${where} is not base64`);
}

function isStrict(text: string): boolean {
  try {
    Uint8Array.fromBase64(text, { lastChunkHandling: 'strict' });
    return true;
  } catch {
    return false;
  }
}
