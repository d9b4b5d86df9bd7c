import type { S3Client } from 'bun';
import { assert } from '../../lib/assert.ts';
import { type Backoff, backoffMs } from '../../lib/backoff.ts';
import { type Clock, pause } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type Creation, isObjectName, type ObjectStore, type ObjectWriter } from './object-store.ts';

interface BucketDeps {
  /** With the credentials of now: a secret may be replaced while a backup runs. */
  readonly client: () => S3Client;
  readonly clock: Clock;
  /** Sends the one request that the client cannot: a conditional one. */
  readonly fetch: (request: Request) => Promise<Response>;
}

const attemptsMax = 4;
const retries: Backoff = { firstMs: 200, maxMs: 5_000 };
const partBytes = 8 * 1_024 * 1_024;
const attemptTimeoutMs = 120_000;
/** An upload to a store that is silent does not end, also when it is given up. */
const giveUpTimeoutMs = 5_000;
const listPagesMax = 1_000;
/** Sorts behind every character of a name: behind all that is in a folder. */
const behindNames = '~';

/** A prefix in the bucket of an S3-compatible service. Reads and small writes are tried again; a payload is one upload. */
export class BucketStore implements ObjectStore {
  readonly #deps: BucketDeps;
  readonly #prefix: string;

  /** `prefix` is empty or ends with a slash. */
  constructor(deps: BucketDeps, prefix: string) {
    this.#deps = deps;
    this.#prefix = prefix;
  }

  open(name: string): Promise<ObjectWriter> {
    const key = this.#key(name);
    const sink = this.#deps.client().file(key).writer({ partSize: partBytes, queueSize: 2, retry: 3 });
    let sent = 0;
    return Promise.resolve({
      write: (bytes) =>
        this.#once(async () => {
          sent += bytes.byteLength;
          sink.write(bytes);
          // Not more than a few parts wait in memory.
          await sink.flush();
        }),
      close: async () => {
        await this.#once(async () => void (await sink.end()));
        await this.#requireKept(key, sent);
      },
      abort: () => {
        const ended = async () => void (await sink.end(new Error('the backup was given up')));
        return this.#inTime(ended, giveUpTimeoutMs).catch(() => undefined);
      },
    });
  }

  /**
   * A presigned PUT with `If-None-Match: *`, which a store that knows it refuses where the object is there. Others would
   * replace it: so it is looked for before, and read back after, which tells whose it is.
   */
  async create(name: string, bytes: Uint8Array): Promise<Creation> {
    const key = this.#key(name);
    if (await this.#again(() => this.#deps.client().exists(key))) return 'exists';
    const url = this.#deps.client().presign(key, { method: 'PUT', expiresIn: 300 });
    let failure: unknown;
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      try {
        const headers = { 'if-none-match': '*' };
        const response = await this.#inTime((signal) =>
          this.#deps.fetch(new Request(url, { method: 'PUT', body: bytes, headers, signal })),
        );
        await response.body?.cancel();
        if (response.ok || response.status === 412) {
          return (await this.#isOurs(name, bytes)) ? 'created' : 'exists';
        }
        if (response.status < 500 && response.status !== 409 && response.status !== 429) throw refused(response.status);
        failure = new Error(`the object store answers ${response.status}`);
      } catch (error) {
        if (error instanceof ServiceError) throw error;
        failure = error;
      }
      await pause(this.#deps.clock, backoffMs(attempt, retries));
    }
    // An answer may have been lost on its way back: what is there says whether the object was written.
    const found = await this.read(name, 0, bytes.byteLength + 1).catch(() => null);
    if (found === null) throw unavailable(failure, { isUnknown: true });
    if (found === undefined) throw unavailable(failure);
    return Buffer.compare(found, bytes) === 0 ? 'created' : 'exists';
  }

  async #isOurs(name: string, bytes: Uint8Array): Promise<boolean> {
    const found = await this.read(name, 0, bytes.byteLength + 1).catch((error: unknown) => {
      throw unavailable(error, { isUnknown: true });
    });
    // The store has said that it has the object: a read that does not find it is an old one.
    if (found === undefined) throw unavailable(undefined, { isUnknown: true });
    return Buffer.compare(found, bytes) === 0;
  }

  read(name: string, from: number, to: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (!isObjectName(name)) return Promise.resolve(undefined);
    return this.#again(async () => {
      const file = this.#deps.client().file(this.#key(name));
      try {
        const bytes = new Uint8Array(await file.slice(from, to).arrayBuffer());
        return bytes.byteLength > to - from ? bytes.slice(from, to) : bytes;
      } catch (error) {
        if (isMissing(error)) return undefined;
        // A range behind the end.
        if (error instanceof Error && 'code' in error && error.code === 'InvalidRange') return new Uint8Array(0);
        throw error;
      }
    });
  }

  async list({ prefix, after, limit }: { prefix: string; after: string; limit: number }) {
    const names: string[] = [];
    let last = `${this.#prefix}${after}`;
    for (let page = 0; page < listPagesMax; page += 1) {
      // The files of backups, which lie in folders, are many times as many as their manifests.
      const asked = { prefix: `${this.#prefix}${prefix}`, delimiter: '/', startAfter: last, maxKeys: 1_000 };
      const listing = await this.#again(() => this.#deps.client().list(asked));
      const keys = (listing.contents ?? []).map(({ key }) => key);
      for (const key of keys) {
        const name = key.slice(this.#prefix.length);
        if (key.startsWith(this.#prefix) && isObjectName(name) && !name.includes('/') && name > after) names.push(name);
      }
      if (names.length > limit || !listing.isTruncated) {
        names.sort();
        return { names: names.slice(0, limit), more: names.length > limit };
      }
      const folders = (listing.commonPrefixes ?? []).map((folder) => `${folder.prefix}${behindNames}`);
      const next = [...keys, ...folders].sort().at(-1);
      if (next === undefined || next <= last) break;
      last = next;
    }
    // There are more than were found.
    const message = 'the object store does not come to the end of its list; keep backups at a prefix of their own';
    throw new ServiceError('location_unavailable', message);
  }

  async remove(name: string): Promise<void> {
    await this.#again(() => this.#deps.client().delete(this.#key(name)));
  }

  /** A store that takes less than it is sent says nothing of it. One that shows an earlier size is asked again. */
  async #requireKept(key: string, sent: number): Promise<void> {
    let kept: number | undefined;
    try {
      await this.#again(async () => {
        kept = (await this.#deps.client().stat(key)).size;
        if (kept !== sent) throw new RangeError('an object of another size than was sent');
      });
    } catch (error) {
      throw kept === undefined ? error : shortened(kept, sent);
    }
  }

  #key(name: string): string {
    assert(isObjectName(name), 'an object of a name that a backup does not give');
    return `${this.#prefix}${name}`;
  }

  async #again<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#inTime(work);
      } catch (error) {
        if (attempt >= attemptsMax || isRefusal(error)) return failing(() => Promise.reject(error));
        await pause(this.#deps.clock, backoffMs(attempt, retries));
      }
    }
  }

  #once<Result>(work: () => Promise<Result>): Promise<Result> {
    return failing(() => this.#inTime(work));
  }

  /** The signal tells work that goes on behind the deadline that nobody waits for it. */
  #inTime<Result>(work: (signal: AbortSignal) => Promise<Result>, timeoutMs = attemptTimeoutMs): Promise<Result> {
    const stop = new AbortController();
    return new Promise((resolve, reject) => {
      const cancel = this.#deps.clock.after(timeoutMs, () => {
        reject(new Error('the object store is silent'));
        stop.abort();
      });
      work(stop.signal).then(resolve, reject).finally(cancel);
    });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function isMissing(error: unknown): boolean {
  return ['NoSuchKey', 'ENOENT', 'NotFound'].includes(codeOf(error));
}

/** Another attempt would be answered alike. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof ServiceError ||
    /^(AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|NoSuchBucket)$/.test(codeOf(error))
  );
}

function refused(status: number): ServiceError {
  const message = `the object store refuses the request with ${status}; check the credentials of the connection`;
  return new ServiceError('location_unavailable', message);
}

function shortened(size: number, sent: number): ServiceError {
  const message = `the object store has kept ${size} of ${sent} bytes of an object; look at what is before the store`;
  return new ServiceError('location_unavailable', message);
}

function unavailable(cause: unknown, details: Record<string, unknown> = {}): ServiceError {
  if (cause instanceof ServiceError) return new ServiceError(cause.code, cause.message, { cause, details });
  const code = codeOf(cause);
  const known = isRefusal(cause)
    ? `the object store refuses the request (${code})`
    : 'the object store fails, or cannot be reached';
  return new ServiceError('location_unavailable', `${known}; try again`, { cause, details });
}

async function failing<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ServiceError ? error : unavailable(error);
  }
}
