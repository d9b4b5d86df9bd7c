import { readBase64 } from '../../lib/text/base64.ts';

/** The content of the header `Authorization`, unchecked. */
export type Credential =
  | { readonly kind: 'key'; readonly keyId: string; readonly secret: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string };

/** Longer headers are not credentials of ours. */
const headerCharsMax = 1_024;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads `Bearer` and `ApiKey` with base64 of `key_id:key_secret`, and `Basic` with base64 of `user:password` (RFC 7617).
 * Undefined for everything else.
 */
export function readCredential(header: string): Credential | undefined {
  if (header.length > headerCharsMax) return undefined;
  const [, scheme = '', encoded = ''] = /^([A-Za-z]+) +([A-Za-z0-9+/_-]+={0,2}) *$/.exec(header) ?? [];
  const pair = decodePair(encoded);
  if (pair === undefined) return undefined;
  const [first, second] = pair;
  switch (scheme.toLowerCase()) {
    case 'bearer':
    case 'apikey':
      return { kind: 'key', keyId: first, secret: second };
    case 'basic':
      return { kind: 'password', user: first, password: second };
    default:
      return undefined;
  }
}

/** The id of the key in a header; undefined where it has none. */
export function keyIdIn(header: string): string | undefined {
  const credential = readCredential(header);
  return credential?.kind === 'key' ? credential.keyId : undefined;
}

/** The two sides of the first colon. */
function decodePair(encoded: string): readonly [string, string] | undefined {
  const bytes = readBase64(encoded);
  if (bytes === undefined) return undefined;
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return undefined;
  }
  const colon = text.indexOf(':');
  return colon < 1 ? undefined : [text.slice(0, colon), text.slice(colon + 1)];
}
