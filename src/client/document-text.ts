import { requestRefused } from './sundew-error.ts';

/** A document as JSON. Throws `invalid_request` for what is none, such as `undefined`: in JSON it would only be left out. */
export function textOf(key: string, document: unknown): string {
  const text = JSON.stringify(document) as string | undefined;
  if (text === undefined) throw absent(key, document);
  return text;
}

/** Throws `invalid_request` for a document that JSON would leave out, so that nobody takes it for written. */
export function requireDocuments(documents: Readonly<Record<string, unknown>> | undefined): void {
  for (const key in documents) {
    const document = documents[key];
    if (document === undefined || typeof document === 'function' || typeof document === 'symbol') {
      throw absent(key, document);
    }
  }
}

function absent(key: string, document: unknown): Error {
  const kind = document === undefined ? 'undefined' : `a ${typeof document}`;
  return requestRefused('invalid_request', `the document of the key ${JSON.stringify(key)} is ${kind}; give an object`);
}
