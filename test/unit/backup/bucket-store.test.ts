import { describe, expect, test } from 'bun:test';
import { S3Client } from 'bun';
import { BucketStore } from '../../../src/backup/stores/bucket-store.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

const bytes = new TextEncoder().encode('{}\n');
/** Pauses between attempts are shorter than this, times that a request may take longer. */
const pauseMsMax = 60_000;

/** A store that takes requests and keeps silent about some: of those the time is over at once, and no pause is waited for. */
class SilentBucket implements AsyncDisposable {
  readonly #waiting = new Set<() => void>();
  readonly #server: ReturnType<typeof Bun.serve>;
  readonly store: BucketStore;
  readonly silences: string[] = [];

  constructor(answer: (request: Request) => Response | 'silence') {
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      fetch: (request) => {
        const answered = answer(request);
        if (answered !== 'silence') return answered;
        this.silences.push(request.method);
        setImmediate(() => {
          for (const passes of [...this.#waiting]) passes();
        });
        return new Promise<Response>(() => undefined);
      },
    });
    const endpoint = `http://127.0.0.1:${this.#server.port}`;
    const client = new S3Client({ endpoint, bucket: 'b', region: 'x', accessKeyId: 'x', secretAccessKey: 'x' });
    const clock: Clock = {
      ...systemClock,
      after: (delayMs, callback) => {
        if (delayMs < pauseMsMax) return systemClock.after(0, callback);
        this.#waiting.add(callback);
        return () => void this.#waiting.delete(callback);
      },
    };
    this.store = new BucketStore({ client: () => client, clock, fetch: (request) => fetch(request) }, '');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }
}

const failureOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ServiceError)) throw new Error(`not refused: ${error}`);
  return { code: error.code, retryable: error.retryable, isUnknown: error.details?.isUnknown === true };
};

describe('B04: a bucket that takes a request and never answers', () => {
  test('a manifest is there when the bucket has it all the same', async () => {
    await using bucket = new SilentBucket(({ method }) => {
      if (method === 'PUT') return 'silence';
      return method === 'HEAD' ? new Response(null, { status: 404 }) : new Response(bytes, { status: 206 });
    });
    expect(await bucket.store.create('b-cluster-metadata.json', bytes)).toBe('created');
    expect(bucket.silences).toEqual(['PUT', 'PUT', 'PUT', 'PUT']);
  });

  test('a manifest that it does not have was not written', async () => {
    const none = '<Error><Code>NoSuchKey</Code></Error>';
    await using bucket = new SilentBucket(({ method }) =>
      method === 'PUT' ? 'silence' : new Response(method === 'HEAD' ? null : none, { status: 404 }),
    );
    expect(await failureOf(bucket.store.create('b-cluster-metadata.json', bytes))).toEqual({
      code: 'location_unavailable',
      retryable: true,
      isUnknown: false,
    });
  });

  test('of a manifest that cannot be read back nobody knows', async () => {
    await using bucket = new SilentBucket(({ method }) =>
      method === 'HEAD' ? new Response(null, { status: 404 }) : 'silence',
    );
    expect(await failureOf(bucket.store.create('b-cluster-metadata.json', bytes))).toEqual({
      code: 'location_unavailable',
      retryable: true,
      isUnknown: true,
    });
  });

  test.each([200, 412])('nor of one that it says it has (%d) and does not show', async (status) => {
    const none = '<Error><Code>NoSuchKey</Code></Error>';
    await using bucket = new SilentBucket(({ method }) =>
      method === 'PUT'
        ? new Response(null, { status })
        : new Response(method === 'HEAD' ? null : none, { status: 404 }),
    );
    expect(await failureOf(bucket.store.create('b-cluster-metadata.json', bytes))).toEqual({
      code: 'location_unavailable',
      retryable: true,
      isUnknown: true,
    });
  });

  test.each([1, 24 * 1_024 * 1_024])('a payload of %d bytes fails, and can be given up', async (length) => {
    await using bucket = new SilentBucket(() => 'silence');
    const payload = await bucket.store.open('b/g/table-0-range-0-0.ndjson.zst');
    const written = (async () => {
      await payload.write(new Uint8Array(length));
      await payload.close();
    })();
    expect(await failureOf(written)).toEqual({ code: 'location_unavailable', retryable: true, isUnknown: false });
    await payload.abort();
    expect(bucket.silences.length).toBeGreaterThan(0);
  });
});

/** The answer of a bucket with these keys, as S3 lists them. */
function listing(keys: readonly string[], url: string): Response {
  const { searchParams } = new URL(url);
  const [delimiter, after, most] = ['delimiter', 'start-after', 'max-keys'].map((name) => searchParams.get(name) ?? '');
  const items = new Set<string>();
  for (const key of keys.filter((each) => each > (after ?? '')).toSorted()) {
    const end = delimiter === '' ? -1 : key.indexOf(delimiter ?? '');
    items.add(end < 0 ? key : key.slice(0, end + 1));
  }
  const page = [...items].slice(0, Number(most));
  const shown = page.map((item) =>
    item.endsWith('/')
      ? `<CommonPrefixes><Prefix>${item}</Prefix></CommonPrefixes>`
      : `<Contents><Key>${item}</Key><Size>1</Size></Contents>`,
  );
  const truncated = page.length < items.size;
  const body = `<ListBucketResult><IsTruncated>${truncated}</IsTruncated>${shown.join('')}</ListBucketResult>`;
  return new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, {
    headers: { 'content-type': 'application/xml' },
  });
}

describe('a list of a bucket', () => {
  const manifest = (id: number) => `b${String(id).padStart(4, '0')}-cluster-metadata.json`;

  test('passes over the files of backups, however many they are', async () => {
    const ids = Array.from({ length: 1_200 }, (_, id) => id);
    const files = ids.flatMap((id) => Array.from({ length: 20 }, (_, at) => `b${String(id).padStart(4, '0')}/g/${at}`));
    let requests = 0;
    await using bucket = new SilentBucket(({ url }) => {
      requests += 1;
      return listing([...ids.map(manifest), ...files], url);
    });
    const all = await bucket.store.list({ prefix: '', after: '', limit: 10_000 });
    expect([all.names.length, all.more]).toEqual([1_200, false]);
    expect(all.names).toEqual(ids.map(manifest));
    expect(requests).toBeLessThan(5);
    const some = await bucket.store.list({ prefix: '', after: manifest(1_100), limit: 50 });
    expect([some.names[0], some.names.length, some.more]).toEqual([manifest(1_101), 50, true]);
  });

  test('that does not come to its end is an error, not a shorter list', async () => {
    const first = `<Contents><Key>${manifest(1)}</Key><Size>1</Size></Contents>`;
    const body = `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>true</IsTruncated>${first}</ListBucketResult>`;
    await using bucket = new SilentBucket(() => new Response(body, { headers: { 'content-type': 'application/xml' } }));
    const listed = bucket.store.list({ prefix: '', after: '', limit: 10 });
    expect(await failureOf(listed)).toMatchObject({ code: 'location_unavailable' });
  });
});
