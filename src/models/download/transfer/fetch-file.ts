import { type Backoff, backoffMs } from '../../../lib/backoff.ts';
import { type Clock, pause } from '../../../lib/clock.ts';
import { DownloadError, DownloadStopped } from './download-error.ts';
import type { PartialFile } from './partial-file.ts';

/** Attempts in a row that bring no byte before a source is given up. */
const barrenAttemptsMax = 3;
const retries: Backoff = { firstMs: 500, maxMs: 30_000 };
/** How long a server may take to answer at all, in milliseconds: behind a closed firewall nothing ever comes. */
const answerMs = 10_000;
/** Silence after which a connection is given up, in milliseconds. */
const silenceMs = 30_000;

export interface FetchFileOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  readonly onBytes?: (received: number) => void;
  readonly onRetry?: (reason: string) => void;
}

/** The place could not be reached, or did not go on; another attempt may well. */
export class Interrupted extends DownloadError {}

/** Nothing answers there. */
export class Unreachable extends Interrupted {}

/**
 * Fetches what a file still lacks, goes on after interruptions where the last one ended, and checks the whole. Answers
 * its SHA-256.
 * Throws `DownloadError`; what arrived stays for the next attempt.
 */
export async function fetchFile(url: string, file: PartialFile, options: FetchFileOptions): Promise<string> {
  for (let barren = 0; !file.isComplete; ) {
    const before = file.received;
    try {
      await fetchRest(url, file, options);
    } catch (error) {
      if (options.signal?.aborted) throw new DownloadStopped('the download was cancelled; what has arrived is kept');
      if (!(error instanceof Interrupted)) throw error;
      barren = file.received > before ? 1 : barren + 1;
      if (barren >= barrenAttemptsMax) throw error;
      if (!(error instanceof Unreachable)) options.onRetry?.(error.message);
      await pause(options.clock, backoffMs(barren, retries), options.signal);
    }
  }
  return await file.finish();
}

async function fetchRest(url: string, file: PartialFile, options: FetchFileOptions): Promise<void> {
  const given = new AbortController();
  const stop = () => given.abort();
  options.signal?.addEventListener('abort', stop, { once: true });
  let cancelSilence = options.clock.after(answerMs, stop);
  let answered = false;
  try {
    const response = await fetch(url, { headers: requestHeaders(file), signal: given.signal });
    answered = true;
    cancelSilence();
    cancelSilence = options.clock.after(silenceMs, stop);
    checkAnswer(response, file);
    if (response.status === 200 && file.received > 0) file.reset();
    for await (const bytes of response.body ?? []) {
      cancelSilence();
      file.write(bytes);
      options.onBytes?.(file.received);
      cancelSilence = options.clock.after(silenceMs, stop);
    }
  } catch (error) {
    if (error instanceof DownloadError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (answered) throw new Interrupted(`the connection failed: ${reason}`, { cause: error });
    throw new Unreachable(given.signal.aborted ? `no answer within ${answerMs / 1_000} s` : reason, { cause: error });
  } finally {
    cancelSilence();
    options.signal?.removeEventListener('abort', stop);
  }
  if (!file.isComplete) throw new Interrupted(`the connection ended after ${file.received} bytes`);
}

function requestHeaders(file: PartialFile): Record<string, string> {
  const identity = { 'accept-encoding': 'identity' };
  return file.received > 0 ? { ...identity, range: `bytes=${file.received}-` } : identity;
}

/** Refuses what cannot be the file before any of it is kept. */
function checkAnswer({ status, headers }: Response, file: PartialFile): void {
  if (status === 416) file.reset();
  if (status === 416 || status === 429 || status >= 500) throw new Interrupted(`the answer was HTTP ${status}`);
  if (status !== 200 && status !== 206) throw new DownloadError(`the answer was HTTP ${status}`);
  if (/^text\/html\b/i.test(headers.get('content-type') ?? '')) {
    throw new DownloadError('the answer was a web page, as proxies and login pages give, and not the file');
  }
  if (status === 206) {
    const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get('content-range') ?? '');
    if (range?.[1] !== String(file.received)) {
      file.reset();
      throw new Interrupted('the answer was another part of the file than was asked for');
    }
    return;
  }
  const length = headers.get('content-length');
  if (length !== null && Number(length) !== file.wanted.bytes) {
    throw new DownloadError(`the file there has ${length} bytes, not ${file.wanted.bytes}`);
  }
}
