import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';

interface ReadBodyOptions {
  /** Bytes, after inflation. */
  readonly bytesMax: number;
  readonly gzip: boolean;
  /** Time for a body that is read in chunks; every `bytesPerSecondMin` bytes that arrive buy one second more. */
  readonly deadlineMs: number;
  readonly bytesPerSecondMin: number;
  readonly clock: Clock;
  /** All bytes are there; inflating them is not the client's time. */
  readonly onReceived: () => void;
  /** Counts the bytes that the body holds so far, or is about to hold; throws where that is too much beside other bodies. */
  readonly count: (bytes: number) => void;
}

/** Above this a body is read in chunks, so that its pace can be watched. */
const wholeReadBytesMax = 256 * 1024;
const noBytes = new Uint8Array(0);

/**
 * The bytes of a request's body; empty when it has none. A body that announces at most 256 KiB is read whole, and its
 * deadline is the caller's to keep; a larger one, or one without a length, is read in chunks against its own.
 *
 * Errors: `payload_too_large` (before reading, when the length is announced), `request_timeout`,
 * `unsupported_media_type`, `invalid_request` (damaged gzip, or the client left before the end), and what `count` throws.
 */
export function readBody(request: Request, length: number | undefined, options: ReadBodyOptions): Promise<Uint8Array> {
  const gzipped = isGzip(request, options.gzip);
  if (length === 0) return Promise.resolve(noBytes);
  if (length !== undefined && length > options.bytesMax) throw tooLarge(options.bytesMax);
  const bytes = isReadWhole(length) ? request.bytes() : readChunks(request.body, request.signal, options);
  if (!gzipped) return bytes;
  return bytes.then((compressed) => {
    options.onReceived();
    return inflateCounted(compressed, options);
  });
}

/** Whether a body that announces `length` bytes is read whole, and its caller has to keep its deadline. */
export function isReadWhole(length: number | undefined): boolean {
  return length !== undefined && length <= wholeReadBytesMax;
}

/**
 * Bytes that the body announces; 0 when there is no body, `undefined` when it comes in chunks of unknown number.
 * Asking the request for its body would make a stream of it, which costs more than the rest of a small request.
 */
export function announcedLength(headers: Headers): number | undefined {
  const length = headers.get('content-length');
  if (length !== null) return Number(length);
  return headers.has('transfer-encoding') ? undefined : 0;
}

/** The same of a request that was made in this process: whether it has a body does not stand in its headers. */
export function lengthOfCall(request: Request): number | undefined {
  return announcedLength(request.headers) || (request.body === null ? 0 : undefined);
}

function isGzip(request: Request, allowed: boolean): boolean {
  const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
  if (encoding === 'identity' || encoding === '') return false;
  if (allowed && (encoding === 'gzip' || encoding === 'x-gzip')) return true;
  const accepted = allowed ? 'gzip and identity are' : 'only identity is';
  throw new ServiceError(
    'unsupported_media_type',
    `content encoding "${printable(encoding)}" is not supported here; ${accepted}`,
  );
}

function printable(text: string): string {
  return text.slice(0, 40).replace(/[^\x20-\x7e]/g, '?');
}

function tooLarge(bytesMax: number): ServiceError {
  return new ServiceError('payload_too_large', `the body is larger than ${bytesMax} bytes, the limit of this route`);
}

/** The body is late. */
export function tooSlow(): ServiceError {
  return new ServiceError('request_timeout', 'the body did not arrive in time');
}

/** The client left before the end of its body. */
export function incomplete(cause: unknown): ServiceError {
  return new ServiceError('invalid_request', 'the body ended before its announced length', { cause });
}

async function readChunks(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
  options: ReadBodyOptions,
): Promise<Uint8Array> {
  if (body === null) return noBytes;
  const reader = body.getReader();
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => {});
  const leave = () => stopped.reject(incomplete(signal.reason));
  signal.addEventListener('abort', leave, { once: true });
  const startedMs = options.clock.monotonicMs();
  let total = 0;
  let cancelTimer = () => {};
  const watch = () => {
    const allowedMs = options.deadlineMs + (total / options.bytesPerSecondMin) * 1_000;
    const leftMs = startedMs + allowedMs - options.clock.monotonicMs();
    if (leftMs <= 0) stopped.reject(tooSlow());
    else cancelTimer = options.clock.after(leftMs, watch);
  };
  watch();
  const chunks: Uint8Array[] = [];
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), stopped.promise]);
      if (done) return joined(chunks, total);
      total += value.byteLength;
      if (total > options.bytesMax) throw tooLarge(options.bytesMax);
      options.count(total);
      chunks.push(value);
    }
  } catch (thrown) {
    reader.cancel().catch(() => {});
    throw thrown instanceof ServiceError ? thrown : incomplete(thrown);
  } finally {
    cancelTimer();
    signal.removeEventListener('abort', leave);
  }
}

function joined(chunks: readonly Uint8Array[], total: number): Uint8Array {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  const bytes = new Uint8Array(total);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

/** Inflates what was counted, by the size that the body states; one that has more is counted by the bound, and inflated again. */
async function inflateCounted(compressed: Uint8Array, { bytesMax, count }: ReadBodyOptions): Promise<Uint8Array> {
  const stated = Math.min(statedSize(compressed), bytesMax);
  count(stated);
  const inflated = await inflate(compressed, stated);
  if (inflated !== undefined) return inflated;
  count(bytesMax);
  const whole = stated < bytesMax ? await inflate(compressed, bytesMax) : undefined;
  if (whole === undefined) throw tooLarge(bytesMax);
  return whole;
}

/** Inflated size by the end of a gzip body, in bytes (RFC 1952, ISIZE): of its last part alone, and not to be relied on. */
function statedSize(compressed: Uint8Array): number {
  const { buffer, byteOffset, byteLength } = compressed;
  return byteLength < 4 ? 0 : new DataView(buffer, byteOffset + byteLength - 4, 4).getUint32(0, true);
}

/** Inflates off the main thread, and stops at the bound, which a body costs at most; undefined for one that has more. */
async function inflate(bytes: Uint8Array, bytesMax: number): Promise<Uint8Array | undefined> {
  // Loaded with the first compressed body: most servers start without ever seeing one.
  const { gunzip } = await import('node:zlib');
  return new Promise((resolve, reject) => {
    gunzip(bytes, { maxOutputLength: Math.max(1, bytesMax) }, (error, inflated) => {
      if (error === null) resolve(new Uint8Array(inflated.buffer, inflated.byteOffset, inflated.byteLength));
      else if ('code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') resolve(undefined);
      else reject(new ServiceError('invalid_request', 'the body is not valid gzip', { cause: error }));
    });
  });
}
