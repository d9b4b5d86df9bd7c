import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { ChildServer } from '../support/fault/child-server.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { answeredWith, expectClean } from './clean-failure.ts';

setDefaultTimeout(120_000);

const MiB = 1024 * 1024;
/** The runtime's own, for the first head of a connection; it looks every 4 s. */
const headerDeadlineMs = 10_000;
let directory: string;
let server: ChildServer;
let wire: WireClient;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'sundew-input-'));
  server = await ChildServer.start({
    dataDir: join(directory, 'data'),
    environment: { SUNDEW__LIMITS__BODY_DEADLINE: '500ms' },
  });
  wire = new WireClient(server.url);
  await wire.createTable('t', { num_shards: 3 });
});

afterAll(async () => {
  await server.kill();
  rmSync(directory, { recursive: true, force: true });
});

const batchPath = '/db/v1/tables/t/batch';

/** A batch that holds one good document beside the bad part, so that "all or nothing" can be seen. */
function withWitness(bad: string): string {
  return `{"inserts":{"witness":{"a":1},${bad}}}`;
}

async function refused(body: string | Uint8Array, status: number, code: string): Promise<void> {
  const before = await answeredWith(server, status);
  await expectClean(server, await wire.send('POST', batchPath, body), status, code);
  expect(await answeredWith(server, status)).toBe(before + 1);
  expect(await wire.lookup('t', 'witness')).toBeUndefined();
}

describe('I01 deep JSON', () => {
  test.each([100_000, 1_000_000])('%d levels are refused before they are parsed', async (depth) => {
    await refused(withWitness(`"k":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`), 400, 'json_too_deep');
  });

  test('a document of 64 levels is taken, one of 65 is not', async () => {
    // The document is a level itself.
    const nested = (levels: number) => `{"inserts":{"deep":{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}}}`;
    expect((await wire.send('POST', batchPath, nested(64))).status).toBe(201);
    expect((await wire.lookup('t', 'deep'))?.document).toHaveProperty('a');
    await expectClean(server, await wire.send('POST', batchPath, nested(65)), 400, 'json_too_deep');
  });

  test('a deep query is refused too', async () => {
    const body = `{"table":"t","full_text_search":${'{"bool":{"must":'.repeat(20_000)}1${'}}'.repeat(20_000)}}`;
    await expectClean(server, await wire.send('POST', '/db/v1/query', body), 400, 'json_too_deep');
  });
});

describe('I02 large and slow bodies', () => {
  test('a body that announces 128 MiB + 1 is refused before it is read', async () => {
    const answer = await rawRequest(
      `POST ${batchPath} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${128 * MiB + 1}\r\n\r\n{"inserts":`,
    );
    expect(answer).toStartWith('HTTP/1.1 413');
    expect(answer).toContain('"payload_too_large"');
  });

  test('a chunked body of unknown length is cut at the limit', async () => {
    const chunk = new Uint8Array(MiB).fill(0x20);
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent === 80) return controller.close();
        sent += 1;
        controller.enqueue(chunk);
      },
    });
    const answer = await fetch(server.url + batchPath, { method: 'POST', body: stream }).catch(() => undefined);
    // The server may close the connection while the client still sends: then the answer is lost, not the server.
    if (answer) expect(answer.status).toBe(413);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  test('a body of one byte a second is answered 408 at the deadline', async () => {
    const head = `POST ${batchPath} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n`;
    const answer = await rawRequest(head, '{');
    expect(answer).toStartWith('HTTP/1.1 408');
    expect(answer).toContain('"request_timeout"');
  });

  test(
    'a head that never ends costs a connection no longer than its deadline',
    async () => {
      const started = performance.now();
      const answer = await rawRequest(`POST ${batchPath} HTTP/1.1\r\nhost: localhost\r\nx-slow: `);
      expect(answer === '' || answer.startsWith('HTTP/1.1 408')).toBe(true);
      // The runtime closes it within 14 s; the rest is for a busy machine.
      expect(performance.now() - started).toBeLessThan(3 * headerDeadlineMs);
    },
    { timeout: 120_000 },
  );

  test('a body that stops short changes nothing', async () => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.end(
      `POST ${batchPath} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"inserts":{"witness":{}}}`,
    );
    await new Promise((resolve) => socket.on('close', resolve).on('error', resolve).resume());
    expect(await wire.lookup('t', 'witness')).toBeUndefined();
  });
});

/** Sends bytes as they are; `trickle` is sent one byte every 100 ms until the answer is there. Resolves with the answer. */
function rawRequest(head: string, trickle?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(head));
    const timer = trickle && setInterval(() => socket.write(trickle), 100);
    let answer = '';
    socket.on('data', (bytes) => {
      answer += bytes.toString();
      if (!answer.includes('}')) return;
      if (timer) clearInterval(timer);
      socket.destroy();
      resolve(answer);
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(answer));
  });
}

describe('I03 bounds of a batch', () => {
  test('100,000 keys are taken, one more is not', async () => {
    const keys = (count: number) => Array.from({ length: count }, (_, i) => `d${i}`);
    expect((await wire.batch('t', { deletes: keys(100_000) })).status).toBe(201);
    const answer = await wire.batch('t', { inserts: { witness: { a: 1 } }, deletes: keys(100_000) });
    await expectClean(server, answer, 400, 'limit_exceeded');
    expect(String((answer.body as { message: string }).message)).toContain('100000');
    expect(await wire.lookup('t', 'witness')).toBeUndefined();
  });

  const members = (count: number) => Array.from({ length: count }, (_, i) => `"f${i}":1`).join(',');
  const tooLarge: [string, string][] = [
    ['a document over 16 MiB', `"k":{"a":"${'x'.repeat(16 * MiB)}"}`],
    ['a document of 10,001 members', `"k":{${members(10_001)}}`],
    ['a member name of 1 MiB', `"k":{"${'n'.repeat(MiB)}":1}`],
  ];
  test.each(tooLarge)('%s is refused by the name of its limit', async (_, bad) => {
    await refused(withWitness(bad), 400, 'limit_exceeded');
  });

  test('10,000 members are kept', async () => {
    const answer = await wire.send('POST', batchPath, `{"inserts":{"many":{${members(9_990)}}}}`);
    expect(answer.status).toBe(201);
    expect(Object.keys((await wire.lookup('t', 'many'))?.document ?? {}).length).toBe(9_990);
  });

  test('a key over 1,024 bytes is refused', async () => {
    await refused(withWitness(`"${'é'.repeat(513)}":{}`), 400, 'invalid_key');
  });
});

describe('I04 odd JSON', () => {
  const bytes = (...parts: (string | number[])[]) =>
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));
  const refusals: [string, string | Uint8Array, string][] = [
    ['duplicate members', withWitness('"k":{"a":1,"a":2}'), 'invalid_json'],
    ['duplicate keys', withWitness('"k":{},"k":{}'), 'invalid_json'],
    ['duplicate members by escape', withWitness('"k":{"a":1,"\\u0061":2}'), 'invalid_json'],
    ['a lone high surrogate', withWitness('"k":{"a":"\\ud800"}'), 'invalid_json'],
    ['a lone low surrogate', withWitness('"k":{"a":"\\udc00x"}'), 'invalid_json'],
    ['NUL in an inserted key', withWitness('"k\\u0000":{}'), 'invalid_json'],
    ['NUL in a deleted key', '{"inserts":{"witness":{}},"deletes":["k\\u0000"]}', 'invalid_key'],
    ['NUL in a member name', withWitness('"k":{"a\\u0000":1}'), 'invalid_json'],
    ['invalid UTF-8', bytes('{"inserts":{"witness":{},"k":{"a":"', [0xff, 0xfe], '"}}}'), 'invalid_json'],
    ['overlong UTF-8', bytes('{"inserts":{"witness":{},"k":{"a":"', [0xc0, 0x80], '"}}}'), 'invalid_json'],
    ['1e400', withWitness('"k":{"a":1e400}'), 'number_out_of_range'],
    ['-1e400', withWitness('"k":{"a":-1e400}'), 'number_out_of_range'],
    ['2^53 + 1', withWitness('"k":{"a":9007199254740993}'), 'number_out_of_range'],
    ['NaN', withWitness('"k":{"a":NaN}'), 'invalid_json'],
    ['a trailing comma', withWitness('"k":{"a":1,}'), 'invalid_json'],
    ['text behind the value', '{"inserts":{"witness":{}}} x', 'invalid_json'],
  ];
  test.each(refusals)('%s is refused', async (_, body, code) => {
    await refused(body, 400, code);
  });

  const kept: [string, string, string][] = [
    ['-0', '-0', '-0'],
    ['2^53', '9007199254740992', '9007199254740992'],
    ['fraction digits', '1.10', '1.10'],
    ['NUL in a string', '"a\\u0000b"', '"a\\u0000b"'],
    ['a pair of surrogates', '"\\ud83d\\ude00"', '"\\ud83d\\ude00"'],
    ['__proto__', '{"__proto__":{"polluted":true},"constructor":{"prototype":{}}}', '{"__proto__":{"polluted":true}'],
  ];
  test.each(kept)('%s is kept as sent', async (_, value, stored) => {
    expect((await wire.send('POST', batchPath, `{"inserts":{"odd":{"a":${value}}}}`)).status).toBe(201);
    const answer = await fetch(`${server.url}/db/v1/tables/t/lookup/odd`);
    expect(await answer.text()).toContain(`"a":${stored}`);
  });

  test('__proto__ as a path of a transform is an ordinary member and reaches no prototype', async () => {
    await wire.send('POST', batchPath, '{"inserts":{"proto":{"a":1}}}');
    const operations = [
      { op: '$set', path: '$.__proto__.polluted', value: true },
      { op: '$set', path: '$.constructor.prototype.polluted', value: true },
    ];
    expect((await wire.batch('t', { transforms: [{ key: 'proto', operations }] })).status).toBe(201);
    const text = await (await fetch(`${server.url}/db/v1/tables/t/lookup/proto`)).text();
    expect(text).toContain('"__proto__":{"polluted":true}');
    expect(text).toContain('"constructor":{"prototype":{"polluted":true}}');
    await wire.batch('t', {
      transforms: [{ key: 'plain', upsert: true, operations: [{ op: '$inc', path: 'n', value: 1 }] }],
    });
    expect((await wire.lookup('t', 'plain'))?.document).not.toHaveProperty('polluted');
  });
});

describe('I05 compressed bodies', () => {
  const bomb = gzipSync(Buffer.alloc(200 * MiB, 0x20));

  test.each([batchPath, '/db/v1/tables/t/merge'])('%s stops inflating at its limit', async (path) => {
    const answer = await wire.send('POST', path, new Uint8Array(bomb), { 'content-encoding': 'gzip' });
    await expectClean(server, answer, 413, 'payload_too_large');
  });

  test('a merge takes an honest gzip body', async () => {
    const body = gzipSync(JSON.stringify({ records: { 'zz-merged': { a: 1 } }, last_merged_id: 'zz-a' }));
    const path = '/db/v1/tables/t/merge';
    const answer = await wire.send('POST', path, new Uint8Array(body), { 'content-encoding': 'gzip' });
    expect(answer.status).toBe(200);
    expect((await wire.lookup('t', 'zz-merged'))?.document).toHaveProperty('a', 1);
  });
});

describe('I06 names', () => {
  const names = [
    '..%2fx',
    '%2e%2e%2fx',
    'a%2fb',
    'a%5cb',
    'a%00b',
    '_system',
    '.hidden',
    'a..b',
    'x'.repeat(300),
    encodeURIComponent('e\u0301'),
    encodeURIComponent('a\u202eb'),
    encodeURIComponent('a b'),
    '%ff',
  ];
  test.each(names)('a table of the name %s is refused', async (name) => {
    const answer = await wire.send('POST', `/db/v1/tables/${name}`, {});
    expect(answer.status).toBe(400);
    await expectClean(server, answer, 400, name === '%ff' ? (answer.body as { code: string }).code : 'invalid_name');
  });

  test('%2e%2e is folded by URL rules and names no table', async () => {
    const answer = await rawRequest(
      'POST /db/v1/tables/%2e%2e HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 (400|404|405)/);
  });

  test('an index name is held to the same rule', async () => {
    const answer = await wire.send('POST', '/db/v1/tables/t/indexes/..%2fx', { type: 'full_text' });
    await expectClean(server, answer, 400, 'invalid_name');
  });

  test('a look-alike is another table, not the same one', async () => {
    await wire.createTable('paypal');
    await wire.batch('paypal', { inserts: { k: { a: 1 } } });
    const lookAlike = encodeURIComponent('p\u0430ypal');
    expect((await wire.send('GET', `/db/v1/tables/${lookAlike}/lookup/k`)).status).toBe(404);
  });
});

describe('I08 paging bounds', () => {
  const requests: [string, string][] = [
    ['limit 1e9', '{"limit":1000000000}'],
    ['a negative limit', '{"limit":-1}'],
    ['a fractional limit', '{"limit":1.5}'],
    ['offset 1e12', '{"offset":1000000000000}'],
    ['a negative offset', '{"offset":-1}'],
    ['offset and limit beyond the window', '{"offset":9999,"limit":2}'],
    ['a limit that is text', '{"limit":"10"}'],
  ];
  test.each(requests)('%s is refused', async (_, members) => {
    const body = { table: 't', full_text_search: { match_all: {} }, ...(JSON.parse(members) as object) };
    const answer = await wire.send('POST', '/db/v1/query', body);
    expect(answer.status).toBe(400);
    expect((answer.body as { code: string }).code).toMatch(/^(invalid_query|invalid_request|limit_exceeded)$/);
    await expectClean(server, answer, 400, (answer.body as { code: string }).code);
  });

  test('a forged cursor is refused, not followed', async () => {
    const body = {
      table: 't',
      full_text_search: { match_all: {} },
      order_by: [{ field: 'n' }],
      search_after: ['x', 'y'],
    };
    const answer = await wire.send('POST', '/db/v1/query', body);
    expect([400, 501]).toContain(answer.status);
  });

  test('a scan limit below one is refused', async () => {
    const answer = await wire.send('POST', '/db/v1/tables/t/lookup', { limit: 0 });
    await expectClean(server, answer, 400, 'invalid_request');
  });
});

describe('I09 vectors that fit no index', () => {
  const indexes = {
    dense: { type: 'embeddings', external: true, dimension: 2 },
    angle: { type: 'embeddings', external: true, dimension: 2, distance_metric: 'cosine' },
    sparse: { type: 'embeddings', external: true, sparse: true },
  };
  const path = '/db/v1/tables/vectors/batch';
  beforeAll(() => wire.createTable('vectors', { num_shards: 3, indexes }));

  const packed = (values: number[]) => JSON.stringify(Buffer.from(Float32Array.from(values).buffer).toString('base64'));
  test.each([
    ['dense', 'NaN', packed([1, Number.NaN])],
    ['dense', 'Infinity', packed([1, Number.NEGATIVE_INFINITY])],
    ['dense', 'a number beyond float32', '[1,1e39]'],
    ['dense', 'one dimension too few', '[1]'],
    ['dense', '100,000 dimensions', `[${'1,'.repeat(99_999)}1]`],
    ['angle', 'zero norm', '[0,-0.0]'],
    ['sparse', 'a duplicate index', '{"indices":[4,4],"values":[1,2]}'],
    ['sparse', 'unordered indices', '{"indices":[9,2],"values":[1,2]}'],
    ['sparse', 'a negative index', '{"-4":1}'],
    ['nowhere', 'an unknown index', '[1,2]'],
  ])('%s: %s is refused with its place, and nothing is written', async (index, _, vector) => {
    const bad = `"k":{"_embeddings":{${JSON.stringify(index)}:${vector}}}`;
    const answer = await wire.send('POST', path, withWitness(bad));
    await expectClean(server, answer, 400, 'invalid_embedding');
    expect(JSON.stringify(answer.body)).toContain(`_embeddings.${index}`);
    expect(await wire.lookup('vectors', 'witness')).toBeUndefined();
  });

  test('tokens may come in any order', async () => {
    const body = '{"inserts":{"k":{"_embeddings":{"sparse":{"9":1,"2":2}}}}}';
    expect((await wire.send('POST', path, body)).status).toBe(201);
  });
});
