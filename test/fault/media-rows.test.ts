import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import sharp from 'sharp';
import { type FetchMediaDeps, MediaFetcher } from '../../src/inference/media/fetch-media.ts';
import { MediaLoader } from '../../src/inference/media/media-loader.ts';
import { mediaReference } from '../../src/inference/media/media-reference.ts';
import { isPublicAddress } from '../../src/inference/media/public-address.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ModelPool } from '../../src/model-host/model-pool.ts';
import { ServiceError } from '../../src/protocol/service-error.ts';
import { FakeClock } from '../support/fake-clock.ts';

const mebibyte = 1024 * 1024;
const settings = { threads: 1, contextTokensMax: 64, parallelSequences: 1 };
const hostEntry = Bun.fileURLToPath(new URL('../../src/model-host/child/host-main.ts', import.meta.url));

const pool = new ModelPool({
  entry: hostEntry,
  environment: { PATH: process.env.PATH ?? '' },
  clock: systemClock,
  options: { loadMs: 60_000, stallMs: 60_000 },
  pool: {
    loadedModelsMax: 1,
    memoryBytesMax: 4096 * mebibyte,
    keepAliveMs: 60_000,
    checkEveryMs: 60_000,
    stuckMs: 60_000,
  },
  onLoading: () => undefined,
  onLoad: () => undefined,
  onUnload: () => undefined,
  onCrash: () => undefined,
});
afterAll(() => pool.stop());

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
const image = (format: 'png' | 'jpeg' | 'webp' | 'gif', width = 8, height = 4) =>
  sharp({ create: { width, height, channels: 3, background: '#224466' } })
    .toFormat(format)
    .toBuffer();

let png: Uint8Array;
let server: ReturnType<typeof createServer>;
let port = 0;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let asked: string[] = [];

beforeAll(async () => {
  png = await image('png');
  server = createServer((request, response) => {
    asked.push(`${request.headers.host}${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Every name leads to the server of this file, except those whose addresses are given. */
function fetcher(
  addresses: Record<string, string[]> = {},
  change: Partial<FetchMediaDeps> = {},
  policy = {},
): MediaFetcher {
  asked = [];
  answer = (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png);
  return new MediaFetcher({
    policy: { allowedHosts: [], blockPrivateAddresses: true, deadlineMs: 30_000, ...policy },
    clock: systemClock,
    resolve: async (host) =>
      (addresses[host] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    ...change,
  });
}

function open(change: Partial<FetchMediaDeps> = {}): MediaFetcher {
  return fetcher({ 'pictures.example': ['127.0.0.1'] }, change, { blockPrivateAddresses: false });
}

async function refusal(work: Promise<unknown>): Promise<[code: string, message: string]> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ServiceError) return [error.code, error.message];
  throw error ?? new Error('nothing was refused');
}

const get = (from: MediaFetcher, url: string, bytesMax = mebibyte) => from.fetch(url, bytesMax, 'image', undefined);

describe('M01: addresses that are not public', () => {
  const hosts = [
    '127.0.0.1',
    '127.1',
    '0',
    '0x7f.1',
    '2130706433',
    '[::1]',
    '[::]',
    '[::ffff:7f00:1]',
    '[::ffff:10.0.0.1]',
    '[::127.0.0.1]',
    '169.254.169.254',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.0.1',
    '100.64.0.1',
    '[fc00::1]',
    '[fe80::1]',
    '[64:ff9b::7f00:1]',
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '224.0.0.1',
    '255.255.255.255',
    '192.0.2.1',
    'localhost',
    'localhost.',
    'LOCALHOST',
    'x.localhost',
    'metadata.google.internal',
    'printer.local',
  ];
  test.each(hosts)('%s is not asked', async (host) => {
    const blocked: string[] = [];
    const from = fetcher({ localhost: ['127.0.0.1'] }, { onBlocked: (reason) => blocked.push(reason) });
    const [code, message] = await refusal(get(from, `http://${host}:${port}/a.png`));
    expect([code, message, blocked, asked]).toEqual([
      'invalid_media',
      expect.stringContaining('private address'),
      ['address'],
      [],
    ]);
  });
});

describe('M02: names that lead elsewhere', () => {
  test('a name with any address that is not public is not asked', async () => {
    for (const addresses of [['127.0.0.1'], ['93.184.216.34', '10.0.0.1'], ['::ffff:127.0.0.1']]) {
      const [code] = await refusal(get(fetcher({ 'sly.example': addresses }), `http://sly.example:${port}/`));
      expect([code, asked]).toEqual(['invalid_media', []]);
    }
  });

  test('the connection goes to the address that was checked, and the name is resolved once', async () => {
    let resolved = 0;
    const resolve = async () => {
      resolved += 1;
      return [{ address: '127.0.0.1', family: 4 }];
    };
    await get(open({ resolve }), `http://pictures.example:${port}/a.png`);
    expect([resolved, asked]).toEqual([1, [`pictures.example:${port}/a.png`]]);
  });

  test('every redirect is checked, and their number is bounded', async () => {
    const hop = (location: string) => {
      const from = fetcher({ 'pictures.example': ['127.0.0.1'], 'sly.example': ['10.0.0.1'] });
      answer = (_request, response) => response.writeHead(302, { location }).end();
      return from;
    };
    // Only the first host may be private here, so that the server can be reached at all.
    const lenient = (location: string) => {
      const from = open();
      answer = (_request, response) => response.writeHead(302, { location }).end();
      return from;
    };
    expect((await refusal(get(lenient('ftp://pictures.example/'), `http://pictures.example:${port}/`)))[0]).toBe(
      'invalid_media',
    );
    expect((await refusal(get(lenient('http://u:p@pictures.example/'), `http://pictures.example:${port}/`)))[0]).toBe(
      'invalid_media',
    );
    const [code, message] = await refusal(get(lenient('/again'), `http://pictures.example:${port}/`));
    expect([code, message, asked]).toHaveLength(3);
    expect([code, asked.length]).toEqual(['media_fetch_failed', 6]);
    expect((await refusal(get(hop('http://sly.example/'), 'http://sly.example/')))[0]).toBe('invalid_media');
  });

  test('a redirect to a host that is not allowed is not followed', async () => {
    const from = fetcher(
      { 'pictures.example': ['127.0.0.1'], 'b.example': ['127.0.0.1'] },
      {},
      {
        blockPrivateAddresses: false,
        allowedHosts: ['pictures.example'],
      },
    );
    answer = (_request, response) => response.writeHead(307, { location: `http://b.example:${port}/` }).end();
    const [code, message] = await refusal(get(from, `http://pictures.example:${port}/`));
    expect([code, message, asked.length]).toEqual(['invalid_media', expect.stringContaining('this host'), 1]);
  });

  test.each([
    'file:///etc/passwd',
    'ftp://pictures.example/',
    'gopher://pictures.example/',
    'javascript:1',
    '//pictures.example/a',
    'http:\\\\pictures.example\\a',
    'http://user@pictures.example/',
    'http://:p@pictures.example/',
    'http://pictures.example/ a',
    'pictures',
  ])('%s is refused', async (url) => {
    const [code] = await refusal(get(open(), url));
    expect([code, asked]).toEqual(['invalid_media', []]);
  });

  test('the case of the scheme does not matter', async () => {
    expect((await get(open(), `HtTp://PICTURES.example:${port}/`)).bytes).toHaveLength(png.length);
  });
});

describe('M03: answers that are too much', () => {
  const url = () => `http://pictures.example:${port}/a.png`;

  test('an announced length beyond the cap is refused before its bytes', async () => {
    const from = open();
    answer = (_request, response) => {
      response.writeHead(200, { 'content-length': String(100 * 1024 ** 3) });
      response.write(png);
    };
    expect((await refusal(get(from, url())))[0]).toBe('media_too_large');
  });

  test('a stream without a length is cut at the cap', async () => {
    const from = open();
    let sent = 0;
    answer = (_request, response) => {
      const more = () => {
        sent += 65_536;
        if (!response.destroyed && sent < 64 * mebibyte)
          response.write(new Uint8Array(65_536), () => setImmediate(more));
      };
      more();
    };
    expect((await refusal(get(from, url())))[0]).toBe('media_too_large');
    expect(sent).toBeLessThan(32 * mebibyte);
  });

  test('a slow answer ends at the deadline, and a caller who leaves ends it at once', async () => {
    const clock = new FakeClock();
    const from = open({ clock });
    const arrived = Promise.withResolvers<void>();
    answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' });
      response.write(png.subarray(0, 1));
      arrived.resolve();
    };
    const slow = refusal(get(from, url()));
    await arrived.promise;
    await clock.advance(30_000);
    expect(await slow).toEqual(['media_fetch_failed', 'image could not be fetched within 30000 ms']);
    const gone = new AbortController();
    const left = from.fetch(url(), mebibyte, 'image', gone.signal);
    gone.abort(new Error('the client left'));
    expect(left).rejects.toThrow('the client left');
  });

  test('a name server that says nothing is waited for up to the deadline', async () => {
    const clock = new FakeClock();
    const from = open({ clock, resolve: () => new Promise(() => undefined) });
    const slow = refusal(get(from, url()));
    await clock.advance(30_000);
    expect(await slow).toEqual(['media_fetch_failed', 'image could not be fetched within 30000 ms']);
  });

  test('a slow answer that would end with its connection is not taken for a whole one', async () => {
    const clock = new FakeClock();
    const from = open({ clock });
    const arrived = Promise.withResolvers<void>();
    answer = (_request, { socket }) => {
      socket?.write('HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n', () =>
        socket.write(png, () => arrived.resolve()),
      );
    };
    const slow = refusal(get(from, url()));
    await arrived.promise;
    await clock.advance(30_000);
    expect(await slow).toEqual(['media_fetch_failed', 'image could not be fetched within 30000 ms']);
  });

  test('compressed answers, errors and cut answers are refused', async () => {
    const told = async (head: Record<string, string>, status = 200) => {
      const from = open();
      answer = (_request, response) => response.writeHead(status, head).end(png);
      return (await refusal(get(from, url())))[0];
    };
    const signed = `${url()}?signature=canary`;
    // Parts of an address may be secret.
    expect((await refusal(get(open(), signed, 1)))[1]).not.toContain('canary');
    expect((await refusal(get(fetcher(), signed)))[1]).not.toContain('canary');
    expect((await refusal(get(open(), `${signed}\\`)))[1]).not.toContain('canary');
    expect(await told({ 'content-encoding': 'gzip' })).toBe('invalid_media');
    expect([await told({}, 500), await told({}, 429)]).toEqual(['media_fetch_failed', 'media_fetch_failed']);
    expect([await told({}, 404), await told({}, 403)]).toEqual(['image_not_found', 'invalid_media']);
    expect((await refusal(get(fetcher(), 'http://nowhere.example/')))[0]).toBe('media_fetch_failed');
  });
});

/** Loads one image or sound as a request names it. */
async function load(
  url: string,
  change: { mediaBytes?: number; concurrent?: number; edge?: number } = {},
  from = open(),
) {
  const loader = new MediaLoader({
    options: {
      downloadBytesMax: change.mediaBytes ?? 100 * mebibyte,
      concurrentMax: change.concurrent ?? 0,
      edgeMax: change.edge ?? 2048,
    },
    fetcher: from,
    pool,
    settings,
  });
  const reference = mediaReference({ type: 'image_url', image_url: { url } }, 'content[0]');
  return await loader.load(reference === undefined ? [] : [reference]);
}

const dataUri = (bytes: Uint8Array, type = 'image/png') => `data:${type};base64,${base64(bytes)}`;

/** A real PNG whose header is made to claim another size. */
function claiming(width: number, height: number): Uint8Array {
  const bytes = Buffer.from(png);
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  bytes.writeUInt32BE(Bun.hash.crc32(bytes.subarray(12, 29)), 29);
  return bytes;
}

describe('M04: images that are larger than they look', () => {
  test('a small file of 65,535 x 65,535 is refused by its header', async () => {
    const [code, message] = await refusal(load(dataUri(claiming(65_535, 65_535))));
    expect([code, message]).toEqual(['media_too_large', expect.stringContaining('65535 x 65535')]);
  });

  test('pixels are counted over the request, against a share of every request that may run', async () => {
    expect(await load(dataUri(claiming(1_024, 1_024)), { concurrent: 1 })).toHaveLength(1);
    expect((await refusal(load(dataUri(claiming(1_024, 1_025)), { concurrent: 1 })))[0]).toBe('media_too_large');
    expect((await refusal(load(dataUri(claiming(8_000, 8_000)), { edge: 10_000 })))[0]).toBe('media_too_large');
  });

  test('of a picture with ten thousand frames only the first is looked at', async () => {
    const frame = await image('gif', 2, 2);
    const moving = Buffer.concat([
      frame.subarray(0, -1),
      ...Array.from({ length: 10_000 }, () => frame.subarray(frame.indexOf(0x2c), -1)),
      frame.subarray(-1),
    ]);
    expect(await load(dataUri(moving, 'image/gif'))).toMatchObject([{ width: 2, height: 2, mediaType: 'image/gif' }]);
  });

  test('drawings and documents are not taken', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><!ENTITY x "y"></svg>';
    for (const text of [svg, `<?xml version="1.0"?>${svg}`, '%PDF-1.7\n', '<html>']) {
      const [code, message] = await refusal(load(dataUri(Buffer.from(text), 'image/svg+xml')));
      expect([code, message]).toEqual(['invalid_media', expect.stringContaining('none of PNG')]);
    }
  });

  test('bytes are counted as they were sent, and nothing is fetched beyond the budget', async () => {
    const uri = dataUri(png);
    expect((await refusal(load(uri, { mediaBytes: png.length })))[0]).toBe('media_too_large');
    const from = open();
    expect((await refusal(load(`http://pictures.example:${port}/`, { mediaBytes: 0 }, from)))[0]).toBe(
      'media_too_large',
    );
    expect(asked).toEqual([]);
    expect((await refusal(load(`http://pictures.example:${port}/`, { mediaBytes: 10 }, from)))[0]).toBe(
      'media_too_large',
    );
  });
});

describe('M05: images that are not what they say', () => {
  test('every kind that is taken is read, whatever its size in the header', async () => {
    for (const format of ['png', 'jpeg', 'webp', 'gif'] as const) {
      const found = await load(dataUri(await image(format), `image/${format}`));
      expect(found).toMatchObject([{ type: 'image', mediaType: `image/${format}`, width: 8, height: 4 }]);
    }
    expect(await load(`http://pictures.example:${port}/a.png`)).toMatchObject([{ width: 8 }]);
  });

  test('another type than the declared one, broken base64 and broken headers are refused', async () => {
    const jpeg = await image('jpeg');
    const bad = [
      dataUri(jpeg, 'image/png'),
      dataUri(Buffer.from('GIF89a/*\n*/=1;alert(1)//'), 'image/gif'),
      dataUri(png.subarray(0, 20)),
      dataUri(png.subarray(0, 4)),
      dataUri(new Uint8Array()),
      dataUri(png).slice(0, -1),
      `${dataUri(png)}\n`,
      dataUri(png).replace(';base64', ''),
      'data:image/png;base64',
      `data:image/png;base64,${base64(png).replaceAll('+', '-')}!`,
    ];
    for (const uri of bad)
      expect([(await refusal(load(uri)))[0], uri.slice(0, 40)]).toEqual(['invalid_media', uri.slice(0, 40)]);
  });

  test('one that ends early is refused when it is decoded, and the process lives on', async () => {
    const noise = await sharp(Buffer.from(Array.from({ length: 64 * 64 * 3 }, (_, at) => (at * 7919) % 251)), {
      raw: { width: 64, height: 64, channels: 3 },
    })
      .png()
      .toBuffer();
    const input = {
      image: noise.subarray(0, noise.length / 2),
      name: 'content[0]',
      fit: 'fill',
      width: 4,
      height: 4,
    } as const;
    expect((await refusal(pool.run({ backend: 'image', settings }, 'prepareImage', input)))[0]).toBe('invalid_media');
    const whole = await pool.run({ backend: 'image', settings }, 'prepareImage', { ...input, image: noise });
    expect([whole.width, whole.height, whole.data.length]).toEqual([4, 4, 48]);
  });
});

test('an image is prepared as a model wants it', async () => {
  const picture = await image('png', 40, 20);
  const prepare = (change: object) =>
    pool.run({ backend: 'image', settings }, 'prepareImage', {
      image: picture,
      name: 'x',
      fit: 'inside',
      width: 10,
      height: 10,
      ...change,
    });
  const inside = await prepare({});
  expect([inside.width, inside.height, [...inside.data.subarray(0, 3)]]).toEqual([10, 5, [0x22, 0x44, 0x66]]);
  const planes = await prepare({ fit: 'cover', normalize: { mean: [0.5, 0.5, 0.5], deviation: [0.5, 0.5, 0.5] } });
  expect(planes.data).toBeInstanceOf(Float32Array);
  expect([planes.data.length, planes.data[0], planes.data[100], planes.data[299]]).toEqual([
    300,
    expect.closeTo((0x22 / 255 - 0.5) / 0.5, 5),
    expect.closeTo((0x44 / 255 - 0.5) / 0.5, 5),
    expect.closeTo((0x66 / 255 - 0.5) / 0.5, 5),
  ]);
  const file = await prepare({ encode: 'jpeg' });
  expect(await sharp(file.data).metadata()).toMatchObject({ format: 'jpeg', width: 10, height: 5 });
  expect(await prepare({ width: 400, height: 400 })).toMatchObject({ width: 40, height: 20 });
});

test('public addresses are', () => {
  for (const address of ['93.184.216.34', '2606:2800:220:1::1', '::ffff:93.184.216.34']) {
    expect([address, isPublicAddress(address)]).toEqual([address, true]);
  }
});

describe('sounds', () => {
  const hours = (count: number) => count * 3_600 * 16_000 * 2;
  /** One channel of 16 bits at 16 kHz whose header claims a given number of bytes. */
  function wav(claimed: number, samples = 8): Buffer {
    const bytes = Buffer.alloc(44 + 2 * samples);
    bytes.write('RIFF    WAVEfmt ', 'latin1');
    bytes.writeUInt32LE(16, 16);
    bytes.writeUInt16LE(1, 20);
    bytes.writeUInt16LE(1, 22);
    bytes.writeUInt32LE(16_000, 24);
    bytes.writeUInt32LE(32_000, 28);
    bytes.writeUInt16LE(2, 32);
    bytes.writeUInt16LE(16, 34);
    bytes.write('data', 36, 'latin1');
    bytes.writeUInt32LE(claimed, 40);
    return bytes;
  }
  function flac(samples: bigint): Buffer {
    const bytes = Buffer.alloc(42);
    bytes.write('fLaC', 'latin1');
    bytes.writeBigUInt64BE((16_000n << 44n) | (1n << 41n) | (15n << 36n) | samples, 18);
    return bytes;
  }
  const hear = async (sound: Uint8Array, type = 'audio/wav') =>
    await load(`data:${type};base64,${base64(sound)}`).then(([found]) => found);

  test('are told by their bytes', async () => {
    const bytes = wav(16);
    expect(await hear(bytes)).toEqual({ type: 'audio', mediaType: 'audio/wav', bytes: new Uint8Array(bytes) });
    expect((await refusal(hear(bytes, 'audio/mp3')))[0]).toBe('invalid_media');
    const part = mediaReference(
      { type: 'input_audio', input_audio: { data: base64(bytes), format: 'wav' } },
      'content[0]',
    );
    expect(part).toMatchObject({ mediaType: 'audio/wav' });
  });

  test('whose header claims ten hours are refused before anything is decoded', async () => {
    expect((await refusal(hear(wav(hours(10)))))[0]).toBe('media_too_large');
    expect((await refusal(hear(flac(10n * 3_600n * 16_000n), 'audio/flac')))[0]).toBe('media_too_large');
    expect(await hear(flac(16_000n), 'audio/flac')).toMatchObject({ type: 'audio' });
    for (const unknown of [0, 0x7fff_f000, 0x8000_0000, 0xffff_ffff]) {
      expect(await hear(wav(unknown))).toMatchObject({ type: 'audio' });
    }
  });

  test('without a format or without samples are refused', async () => {
    for (const bad of [
      wav(16).subarray(0, 30),
      Buffer.from('RIFF    WAVEdata\0\0\0\0', 'latin1'),
      wav(16).fill(0, 32, 34),
    ]) {
      expect((await refusal(hear(bad)))[0]).toBe('invalid_media');
    }
  });
});
