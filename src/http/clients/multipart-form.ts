import { ServiceError } from '../../protocol/service-error.ts';

/** The parts of a form by their names. */
export interface MultipartForm {
  readonly texts: ReadonlyMap<string, readonly string[]>;
  /** Of several parts with one name, the last. */
  readonly text: (name: string) => string | undefined;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** Reads a `multipart/form-data` body. Throws `unsupported_media_type`, and `invalid_request` for a damaged one. */
export async function readForm(bytes: Uint8Array, contentType: string | null): Promise<MultipartForm> {
  if (!/^multipart\/form-data\s*;/i.test(contentType ?? '')) {
    throw new ServiceError('unsupported_media_type', 'the body must be a form: multipart/form-data');
  }
  const form = await parsed(bytes, contentType ?? '');
  const texts = new Map<string, string[]>();
  const files = new Map<string, Uint8Array>();
  for (const [name, value] of form) {
    if (typeof value === 'string') texts.getOrInsertComputed(name, () => []).push(value);
    else files.set(name, new Uint8Array(await value.arrayBuffer()));
  }
  return { texts, text: (name) => texts.get(name)?.at(-1), files };
}

type Form = Awaited<ReturnType<Response['formData']>>;

async function parsed(bytes: Uint8Array, contentType: string): Promise<Form> {
  try {
    return await new Response(bytes as Uint8Array<ArrayBuffer>, {
      headers: { 'content-type': contentType },
    }).formData();
  } catch (cause) {
    throw new ServiceError('invalid_request', 'the form cannot be read', { cause });
  }
}
