import { scanJson } from '../../engine/json-scan.ts';
import { memberTexts } from '../../lib/text/json-text.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { refuseMisspelledMembers } from '../writes/unknown-members.ts';

const members = ['table', 'key', 'document'];
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** From the body `{table, key, document}` to the commit request that puts the document, spelled as it was sent. */
export function putRequest(body: Uint8Array): Uint8Array {
  scanJson(body);
  const text = decoder.decode(body).trimStart();
  if (!text.startsWith('{')) throw wrongShape();
  const texts = memberTexts(text);
  refuseMisspelledMembers(Object.fromEntries(texts), members, 'The body');
  const [table, key, document] = members.map((name) => texts.get(name));
  if (!table?.startsWith('"') || !key?.startsWith('"') || !document?.startsWith('{')) throw wrongShape();
  return encoder.encode(`{"tables":{${table}:{"inserts":{${key}:${document}}}}}`);
}

/** The commit request that deletes one document. */
export function deleteRequest({ table, key }: { readonly table: string; readonly key: string }): Uint8Array {
  return encoder.encode(JSON.stringify({ tables: { [table]: { deletes: [key] } } }));
}

function wrongShape(): ServiceError {
  return new ServiceError(
    'invalid_request',
    'the body must be {"table", "key", "document"}: two strings and an object',
  );
}
