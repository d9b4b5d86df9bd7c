import type { Clock } from '../../../lib/clock.ts';
import { DownloadError } from './download-error.ts';

const bytesMax = 8 * 1024 * 1024;
const deadlineMs = 30_000;

/** A small text document of a hub or an index. */
export interface FetchedDocument {
  readonly text: string;
  readonly mediaType: string;
  readonly headers: Headers;
  /** Where it was found in the end. */
  readonly url: string;
}

/** Fetches at most 8 MiB within 30 seconds. Throws `DownloadError`; `missing` says what a 404 means. */
export async function fetchDocument(
  url: string,
  options: { readonly accept: string; readonly missing: string; readonly clock: Clock; readonly signal?: AbortSignal },
): Promise<FetchedDocument> {
  const given = new AbortController();
  const stop = () => given.abort();
  options.signal?.addEventListener('abort', stop, { once: true });
  const cancel = options.clock.after(deadlineMs, stop);
  try {
    const response = await fetch(url, { headers: { accept: options.accept }, signal: given.signal });
    const { status, headers } = response;
    if (status === 401 || status === 404) throw new DownloadError(`${options.missing} at ${url}`);
    if (status !== 200) throw new DownloadError(`${url} answered HTTP ${status}`);
    const text = await boundedText(response);
    if (text === undefined) throw new DownloadError(`${url} answered more than ${bytesMax} bytes`);
    const mediaType = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
    return { text, mediaType, headers, url: response.url || url };
  } catch (error) {
    if (error instanceof DownloadError) throw error;
    const reason = given.signal.aborted ? `no answer within ${deadlineMs / 1_000} s` : messageOf(error);
    throw new DownloadError(`${new URL(url).origin} cannot be reached: ${reason}`);
  } finally {
    cancel();
    options.signal?.removeEventListener('abort', stop);
  }
}

async function boundedText({ body }: Response): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let received = 0;
  for await (const piece of body ?? []) {
    received += piece.byteLength;
    if (received > bytesMax) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
