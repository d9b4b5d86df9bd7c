import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { runCommand } from '../../support/command-line.ts';
import { until } from '../../support/fault/until.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

/** The commands that ask a database, each as a person types it. */

let server: TestServer;
let directory: TemporaryDirectory;
beforeAll(async () => {
  server = await startTestServer();
  directory = new TemporaryDirectory();
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

const run = (words: string, ...more: string[]) =>
  runCommand(otherVerbs, [...words.split(' '), ...more, '--url', server.url]);
const json = async (words: string, ...more: string[]) => {
  const { code, printed, explained } = await run(words, ...more);
  expect({ words, code, explained }).toEqual({ words, code: 0, explained: '' });
  return JSON.parse(printed);
};
const lines = (name: string, ...all: string[]) => {
  const path = `${directory.path}/${name}`;
  writeFileSync(path, all.map((line) => `${line}\n`).join(''));
  return path;
};

describe('a table', () => {
  test('is made, listed, shown and dropped', async () => {
    const body = JSON.stringify({ description: 'a shop' });
    const made = await json('table create shop --shards 2 --body', body);
    expect(Object.keys(made.shards)).toHaveLength(2);
    await json('table create other');
    expect((await run('table list')).printed).toBe('other\nshop\n');
    const listed = await run('table list --prefix sh --json');
    expect(
      listed.printed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).name),
    ).toEqual(['shop']);
    expect(await json('table get shop')).toMatchObject({ name: 'shop', description: 'a shop' });
    expect(await run('table drop other')).toEqual({ code: 0, printed: '', explained: '' });
    expect((await run('table list')).printed).toBe('shop\n');
  });

  test('says what was refused, and how it is used', async () => {
    const missing = await run('table get nowhere');
    expect(missing).toMatchObject({ code: 1, printed: '' });
    expect(missing.explained).toContain('table_not_found');
    for (const words of ['table', 'table get', 'table mend shop', 'table list shop', 'table create a b']) {
      expect([words, (await run(words)).code]).toEqual([words, 2]);
    }
    expect((await run('table create x --shards 0')).explained).toContain('--shards must be a whole number from 1 on');
    expect((await run('table create x --body', '[]')).explained).toContain('--body must be a JSON object');
  });
});

describe('documents', () => {
  test('are written, read, found and deleted', async () => {
    await json('table create books');
    const written = await json(
      'insert books a/b --sync-level full_text --value',
      '{"title":"The Sea","year":9007199254740992}',
    );
    expect(written).toMatchObject({ status: 'committed', inserted: 1 });
    const file = lines('one.json', '{"title":"The Land"}');
    await json('insert books c --sync-level full_index --file', file);
    expect(await json('lookup books a/b')).toEqual({ title: 'The Sea', year: 9007199254740992 });
    expect(await json('lookup books a/b --fields year')).toEqual({ year: 9007199254740992 });
    const found = await json('query books --fields title --limit 1 --full-text-search', 'title:sea');
    expect(found.hits.hits).toMatchObject([{ _id: 'a/b', _source: { title: 'The Sea' } }]);
    const filtered = await json('query books --body {"count":true} --filter-query', '{"exists":{"field":"year"}}');
    expect(filtered.hits.total).toEqual({ value: 1, relation: 'exact' });
    expect(await json('delete books a/b c no')).toMatchObject({ deleted: 2 });
    expect((await run('lookup books c')).explained).toContain('key_not_found');
    expect((await run('query books --limit ten')).explained).toContain('"limit"');
    expect((await run('insert books d')).code).toBe(2);
  });
});

describe('an index', () => {
  test('is made, waited for, listed, shown and dropped', async () => {
    await json('table create things');
    const config = { type: 'embeddings', external: true, dimension: 2 };
    expect(await json('index create things v --body', JSON.stringify(config))).toMatchObject({ name: 'v', ...config });
    expect(await run('index wait things v --until complete --timeout 1m')).toMatchObject({
      code: 0,
      printed: 'ready\n',
    });
    expect((await run('index list things')).printed).toBe(
      'full_text_index_v0\tfull_text\tready\nv\tembeddings\tready\n',
    );
    expect(await json('index get things v')).toMatchObject({ config, status: { readiness: { state: 'ready' } } });
    expect((await run('index drop things v')).code).toBe(0);
    expect((await run('index get things v')).explained).toContain('index_not_found');
  });

  test('that is not ready in time is told of with its state, for another try', async () => {
    await json('table create slow');
    await json('insert slow a --value', '{"t":"x"}');
    const embedder = { provider: 'openai', model: 'm', url: 'http://127.0.0.1:9/v1', api_key: 'k' };
    const config = { type: 'embeddings', field: 't', dimension: 2, embedder };
    await json('index create slow v --body', JSON.stringify(config));
    const waited = await run('index wait slow v --timeout 1s');
    expect(waited).toMatchObject({ code: 75, printed: '' });
    expect(waited.explained).toMatch(/^(?:pending|queryable_partial), \d+ %/);
    expect((await run('index wait slow v --until ever')).code).toBe(2);
    expect((await run('index wait slow v --timeout soon')).code).toBe(2);
  });
});

describe('an enrichment', () => {
  test('is registered, listed, shown, tried again for a document, and dropped', async () => {
    await json('table create notes');
    const body = { kind: 'chunk', field: 'body', chunk_size: 600 };
    const done = { code: 0, printed: '', explained: '' };
    expect(await run('artifact put notes steps --body', JSON.stringify(body))).toEqual(done);
    const copy = lines('copy.json', '{"kind":"asset","field":"body"}');
    expect(await run('artifact put notes copy --file', copy)).toEqual(done);
    expect((await run('artifact list notes')).printed.split('\n').sort()).toEqual(['', 'copy\tasset', 'steps\tchunk']);
    expect(await json('artifact get notes steps')).toMatchObject({ name: 'steps', ...body, field: '$.body' });
    await json('insert notes good --sync-level full_index --value', '{"body":"a text"}');
    const made = await run('artifact list notes --document good --json');
    expect(
      made.printed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toContainEqual(expect.objectContaining({ name: 'steps', kind: 'chunk', state: 'ready', attempts: 0 }));
    await json('insert notes bad --value', '{"body":7}');
    const state = async () => (await run('artifact list notes --document bad')).printed;
    const failed = /^steps\tchunk\t(?:retrying|failed)\t\d+\t\S.*$/m;
    await until(async () => failed.test(await state()));
    const again = await json('artifact reprocess notes steps --document bad');
    expect(again).toMatchObject({ artifact_name: 'steps', scanned: 1, reprocessed: 1, failures: [] });
    expect(await json('artifact reprocess notes steps --limit 7')).toMatchObject({ limit: 7, failures: [] });
    expect(await run('artifact delete notes steps')).toEqual(done);
    const gone = { code: 1, printed: '', explained: expect.stringMatching(/^artifact_not_found: /) };
    for (const action of ['get', 'delete', 'reprocess']) {
      expect([action, await run(`artifact ${action} notes steps`)]).toEqual([action, gone]);
    }
    const wrong = ['put notes x', 'put notes', 'reprocess notes copy --limit 0', 'job notes copy', 'delete notes ..'];
    for (const words of [...wrong, 'reprocess notes copy --document a --next-key b', 'get notes copy --document a']) {
      expect([words, (await run(`artifact ${words}`)).code]).toEqual([words, 2]);
    }
  });
});

describe('JSON of a person', () => {
  test('reaches the server as it was written', async () => {
    await json('table create written');
    const long = await run('insert written a --value', '{"n":9007199254740993}');
    expect([long.code, long.explained]).toEqual([1, expect.stringMatching(/^number_out_of_range: /)]);
    const twice = await run('insert written a --value', '{"a":1,"a":2}');
    expect([twice.code, twice.explained]).toEqual([1, expect.stringMatching(/^invalid_json: .*two members/)]);
    await json('insert written a --value', ' {"one": 1.0} ');
    expect((await run('lookup written a')).printed).toBe('{"one": 1.0}\n');
    const filter = '{"term":{"path":"n","value":9007199254740993}}';
    expect((await run('query written --filter-query', filter)).explained).toStartWith('number_out_of_range: ');
    expect((await run('query written --limit 3 --body', '{"limit":5}')).explained).toContain(
      'two members named "limit"',
    );
    expect((await run('table create both --shards 2 --body', '{"num_shards":3}')).code).toBe(1);
  });

  test('is refused where it is not UTF-8', async () => {
    const file = `${directory.path}/latin1.json`;
    writeFileSync(file, Buffer.from('{"v":"é"}', 'latin1'));
    await json('table create bytes');
    expect(await run('insert bytes a --file', file)).toMatchObject({ code: 2, printed: '' });
    const some = `${directory.path}/latin1.ndjson`;
    const whole = '{"id":"b","v":"é\u2028"}\n';
    writeFileSync(some, Buffer.concat([Buffer.from('{"id":"a","v":"é"}\n', 'latin1'), Buffer.from(whole)]));
    const loaded = await run('load bytes --max-errors 1 --file', some);
    expect(loaded.explained).toBe('line 1: the text is not UTF-8\n');
    expect(JSON.parse(loaded.printed)).toMatchObject({ lines: 2, loaded: 1, errors: 1 });
    expect(await json('lookup bytes b')).toEqual({ id: 'b', v: 'é\u2028' });
  });
});

describe('where a command goes', () => {
  const offline = (...words: string[]) => runCommand(otherVerbs, words);

  test('is a data directory that is there, unless the command begins one', async () => {
    const path = `${directory.path}/mistaken`;
    for (const words of ['table list', 'lookup t a', 'query t', 'backup list file:///b']) {
      const { code, explained } = await offline(...words.split(' '), '--data-dir', path);
      expect([words, code, existsSync(path)]).toEqual([words, 1, false]);
      expect(explained).toContain(`${path} is not a data directory`);
    }
    expect((await offline('table', 'create', 't', '--data-dir', path)).code).toBe(0);
    expect((await offline('table', 'list', '--data-dir', path)).printed).toBe('t\n');
  });

  test('is one of the two: options of the other are refused', async () => {
    expect((await run('table list --data-dir', directory.path)).explained).toContain('has its own --data-dir');
    expect((await offline('table', 'list', '--key', 'k')).explained).toContain('"--key" is for a server');
  });
});

describe('names', () => {
  test('of which the address of something else would be made are refused before anything is sent', async () => {
    await json('table create kept');
    for (const words of ['index drop kept ..', 'index drop kept .', 'lookup kept ..', 'table drop ..']) {
      expect([words, (await run(words)).code]).toEqual([words, 2]);
    }
    expect((await run('index drop kept', '')).code).toBe(2);
    expect(await json('table get kept')).toMatchObject({ name: 'kept' });
  });
});

describe('a load', () => {
  const documents = Array.from({ length: 25 }, (_, at) => JSON.stringify({ id: `k${at}`, n: at }));

  test('writes the lines of a file in batches, by a member or by a template of their key', async () => {
    await json('table create loaded');
    const file = lines('all.ndjson', ...documents, '', '{"id":12,"big":12345678901234567.0}');
    const told = { lines: 27, batches: 3, loaded: 26, errors: 0 };
    expect(await json('load loaded --size 10 --sync-level full_index --file', file)).toEqual(told);
    expect(await json('lookup loaded k24')).toEqual({ id: 'k24', n: 24 });
    expect((await run('lookup loaded 12')).printed).toContain('12345678901234567.0');
    const byTemplate = await json('load loaded --batch-bytes 100 --id-template {{id}}:{{n}} --file', file);
    expect(byTemplate).toMatchObject({ loaded: 26, errors: 0 });
    expect(byTemplate.batches).toBeGreaterThan(5);
    expect(await json('lookup loaded k3:3')).toEqual({ id: 'k3', n: 3 });
    expect(await json('load loaded --size 10 --batches 1 --id-field n --file', file)).toMatchObject({ loaded: 10 });
  });

  test('writes nothing in a dry run, and ends at the first mistake unless some are allowed', async () => {
    await json('table create tried');
    const file = lines('some.ndjson', '{"id":"a"}', 'nonsense', '{"n":1}', '[]', '{"id":"b"}', '{"id":"a","n":2}');
    const dry = await run('load tried --dry-run --max-errors 9 --file', file);
    expect([dry.code, JSON.parse(dry.printed)]).toEqual([1, { lines: 6, batches: 2, loaded: 3, errors: 3 }]);
    expect(dry.explained).toMatch(
      /^line 2: .*\nline 3: "id" holds no key\nline 4: a document must be a JSON object\n$/,
    );
    const query = await json('query tried --body {"count":true}');
    expect(query.hits.total.value).toBe(0);
    const strict = await run('load tried --file', file);
    expect([strict.code, JSON.parse(strict.printed)]).toMatchObject([1, { lines: 2, loaded: 1, errors: 1 }]);
    expect(await run('load tried --sync-level full_text --max-errors 3 --file', file)).toMatchObject({ code: 1 });
    expect(await json('lookup tried a')).toEqual({ id: 'a', n: 2 });
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('says how far it came when %s ends it', async (signal, code) => {
    const table = `ended-by-${signal.toLowerCase()}`;
    await json(`table create ${table}`);
    const many = lines(`${table}.ndjson`, ...Array.from({ length: 20_000 }, (_, at) => `{"id":"k${at}"}`));
    const loading = run(`load ${table} --size 2 --file`, many);
    await until(async () => (await run(`lookup ${table} k1`)).code === 0);
    process.emit(signal, signal);
    const ended = await loading;
    const { loaded } = JSON.parse(ended.printed);
    expect([ended.code, ended.explained]).toEqual([
      code,
      `ended behind line ${loaded}; loading the file again writes the rest\n`,
    ]);
    expect(loaded).toBeLessThan(20_000);
    const counted = await json(`query ${table} --body`, '{"count":true,"wait_for_index_ms":10000}');
    expect(counted.hits.total.value).toBe(loaded);
  });

  test('says how far it came when the server goes', async () => {
    let batches = 0;
    await using gone = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch() {
        batches += 1;
        if (batches < 3) return Response.json({ status: 'committed', inserted: 10 }, { status: 201 });
        return Response.json({ code: 'unavailable', error: 'the server stops', retryable: true }, { status: 503 });
      },
    });
    const file = lines('gone.ndjson', ...documents);
    const words = ['load', 't', '--size', '10', '--file', file, '--url', gone.url.href];
    const ended = await runCommand(otherVerbs, words);
    expect(ended.code).toBe(75);
    expect(ended.explained).toContain('ended behind line 20; loading the file again writes the rest\n');
    expect(JSON.parse(ended.printed)).toMatchObject({ batches: 3, loaded: 20 });
  });

  test('ends with what the server refuses, and with a file that is not there', async () => {
    await json(
      'table create strict --body',
      JSON.stringify({
        schema: {
          enforce_types: true,
          document_schemas: { d: { schema: { properties: { id: {}, n: { type: 'integer' } } } } },
        },
      }),
    );
    const file = lines('bad.ndjson', '{"id":"a","n":"x"}', '{"id":"b","n":1}');
    const refused = await run('load strict --size 1 --file', file);
    expect(refused.code).toBe(1);
    expect(refused.explained).toContain('validation_failed');
    expect(JSON.parse(refused.printed)).toMatchObject({ loaded: 0, errors: 1 });
    const allowed = await run('load strict --size 1 --max-errors 1 --file', file);
    expect(JSON.parse(allowed.printed)).toMatchObject({ loaded: 1, errors: 1 });
    expect((await run('load strict --file /nowhere')).code).toBe(2);
    expect((await run('load strict')).code).toBe(2);
  });
});

test.each(['ftp://127.0.0.1', 's3://bucket', 'http://', 'nothing'])(
  'an address such as %p is refused as one',
  async (url) => {
    const { code, explained } = await runCommand(otherVerbs, ['table', 'list', '--url', url]);
    expect([code, explained]).toEqual([2, expect.stringContaining('"--url" is no address of http or https')]);
  },
);
