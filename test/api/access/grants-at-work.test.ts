import { describe, expect, test } from 'bun:test';
import OpenAI from 'openai';
import { type GuardedServer, type Permission, startGuardedServer, table } from '../../support/access.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixtureModels = Bun.fileURLToPath(new URL('../../fixtures/models', import.meta.url));
const fixturePredictors = Bun.fileURLToPath(new URL('../../fixtures/predictors', import.meta.url));

async function withTables(guarded: GuardedServer): Promise<void> {
  for (const name of ['books', 'plates']) {
    expect((await guarded.asAdmin('POST', `/db/v1/tables/${name}`, {})).status).toBe(200);
    const inserts = { a: { team: 'red', n: 1 }, b: { team: 'blue', n: 2 }, c: { team: 'red', n: 3 } };
    const batch = { inserts, sync_level: 'full_index' };
    expect((await guarded.asAdmin('POST', `/db/v1/tables/${name}/batch`, batch)).status).toBe(201);
  }
}

describe('A03: a reader of one table', () => {
  test('sees nothing of another one, in lists, topology, status or bodies', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    const reader = await guarded.user('reader', [table('books', 'read')]);
    const get = (path: string) => guarded.as(reader, 'GET', path);
    expect(((await get('/db/v1/tables')).body as unknown as { name: string }[]).map(({ name }) => name)).toEqual([
      'books',
    ]);
    for (const path of ['/db/v1/cluster', '/db/v1/status', '/db/v1/tables', '/auth/v1/users']) {
      expect(JSON.stringify((await get(path)).body)).not.toContain('plates');
    }
    expect((await guarded.as(reader, 'POST', '/db/v1/query', { table: 'plates' })).body.code).toBe('table_not_found');
    expect((await guarded.as(reader, 'POST', '/db/v1/query', { table: 'books' })).status).toBe(200);
    const write = { inserts: { d: { n: 4 } } };
    const both = await guarded.as(reader, 'POST', '/db/v1/batch', { tables: { books: write } });
    expect([both.status, both.body.code]).toEqual([403, 'forbidden']);
    const hidden = await guarded.as(reader, 'POST', '/db/v1/batch', { tables: { plates: write } });
    const missing = await guarded.as(reader, 'POST', '/db/v1/batch', { tables: { nothing: write } });
    const sentence = (text: unknown) => String(text).replaceAll(/plates|nothing/g, 'x');
    expect([hidden.status, sentence(hidden.body.message)]).toEqual([404, sentence(missing.body.message)]);
  });
});

describe('a row filter of a subject', () => {
  test('with a value of the caller holds in lookups, scans, queries, counts and writes', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    const red = await guarded.user('red', [table('books', 'admin')], { team: 'red' });
    const none = await guarded.user('none', [table('books', 'read')]);
    for (const user of ['red', 'none']) {
      await guarded.asAdmin('POST', `/auth/v1/users/${user}/roles`, { role: 'teams' });
    }
    const filter = { term: { team: { $auth: 'metadata.team' } } };
    await guarded.asAdmin('PUT', '/auth/v1/subjects/role:teams/row-filters/books', filter);
    const keysOf = async (credential: string) => {
      const { body } = await guarded.as(credential, 'POST', '/db/v1/tables/books/query', { limit: 10 });
      const [result] = body.responses as { hits: { total: { value: number }; hits: { _id: string }[] } }[];
      return [result?.hits.total.value, result?.hits.hits.map(({ _id }) => _id).sort()];
    };
    expect(await keysOf(red)).toEqual([2, ['a', 'c']]);
    expect(await keysOf(none)).toEqual([0, []]);
    const statusOf = async (credential: string, key: string) =>
      (await guarded.as(credential, 'GET', `/db/v1/tables/books/lookup/${key}`)).status;
    expect([await statusOf(red, 'a'), await statusOf(red, 'b'), await statusOf(none, 'a')]).toEqual([200, 404, 404]);
    const scanned = await guarded.as<string>(red, 'POST', '/db/v1/tables/books/lookup', {});
    expect(JSON.stringify(scanned.body)).not.toContain('blue');
    const write = async (inserts: object) => {
      const { status, body } = await guarded.as(red, 'POST', '/db/v1/tables/books/batch', { inserts });
      return [status, body.code ?? body.status];
    };
    const own = { team: 'red' };
    expect(await write({ a: own, d: own })).toEqual([201, 'committed']);
    for (const foreign of [{ b: own }, { d: {} }, { d: own, e: { team: 'blue' } }]) {
      expect(await write(foreign)).toEqual([403, 'forbidden']);
    }
    const dropped = await guarded.as(red, 'DELETE', '/db/v1/tables/books');
    expect([dropped.status, dropped.body.code]).toEqual([403, 'forbidden']);
  });

  test('of a key holds beside those of its user', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    await guarded.user('red', [table('books', 'read')]);
    await guarded.asAdmin('PUT', '/auth/v1/users/red/row-filters/books', { term: { team: 'red' } });
    const { credential } = await guarded.key('red', { row_filter: { '*': { term: { n: 3 } } } });
    const statuses = await Promise.all(
      ['a', 'b', 'c'].map(
        async (key) => (await guarded.as(credential, 'GET', `/db/v1/tables/books/lookup/${key}`)).status,
      ),
    );
    expect(statuses).toEqual([404, 404, 200]);
  });
});

describe('a client of the OpenAI interface', () => {
  test('works with a key of ours, and is refused without one or with a key for tables alone', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('app', [{ resource: '*', resource_type: 'inference', type: 'read' }]);
    await guarded.user('reader', [table('books', 'read')]);
    const keyOf = async (user: string) => (await guarded.key(user)).credential.slice('Bearer '.length);
    const list = async (apiKey: string) =>
      (await new OpenAI({ apiKey, baseURL: `${guarded.server.url}/ai/v1`, maxRetries: 0 }).models.list()).data;
    expect(await list(await keyOf('app'))).toBeInstanceOf(Array);
    await expect(list('wrong')).rejects.toMatchObject({ status: 401 });
    await expect(list(await keyOf('reader'))).rejects.toMatchObject({ status: 403 });
  });

  test('embeds, chats and streams with a key of ours, and does none of it without', async () => {
    await using guarded = await startGuardedServer({ set: { '--models-dir': fixtureModels } });
    await guarded.user('app', [{ resource: '*', resource_type: 'inference', type: 'read' }]);
    const clientOf = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${guarded.server.url}/v1`, maxRetries: 0 });
    const messages = [{ role: 'user' as const, content: 'a' }];
    const chat = { model: 'chain', messages, max_tokens: 2 };
    const client = clientOf((await guarded.key('app')).credential.slice('Bearer '.length));
    const { data } = await client.embeddings.create({ model: 'tiny-bert', input: ['tea', 'rust'] });
    expect(data.map(({ embedding }) => embedding.length)).toEqual([32, 32]);
    const whole = (await client.chat.completions.create(chat)).choices[0]?.message.content;
    let streamed = '';
    for await (const { choices } of await client.chat.completions.create({ ...chat, stream: true })) {
      streamed += choices[0]?.delta.content ?? '';
    }
    expect([typeof whole, streamed]).toEqual(['string', String(whole)]);
    const stranger = clientOf('of somebody else');
    const requests = [
      stranger.embeddings.create({ model: 'tiny-bert', input: 'tea' }),
      stranger.chat.completions.create({ ...chat, stream: true }),
    ];
    for (const request of requests) {
      expect(await request.catch((error: unknown) => error)).toMatchObject({ status: 401, code: 'unauthorized' });
    }
  }, 120_000);
});

describe('roles of roles', () => {
  const give = (guarded: GuardedServer, subject: string, role: string) =>
    guarded.asAdmin('POST', `/auth/v1/subjects/${subject}/roles`, { role });

  test('give what they have, and take it back at once', async () => {
    await using guarded = await startGuardedServer();
    await withTables(guarded);
    const ann = await guarded.user('ann', []);
    await guarded.asAdmin('POST', '/auth/v1/subjects/role:readers/permissions', table('books', 'read'));
    await guarded.asAdmin('PUT', '/auth/v1/subjects/group:red/row-filters/books', { term: { team: 'red' } });
    expect((await give(guarded, 'role:editors', 'readers')).status).toBe(201);
    expect((await give(guarded, 'role:readers', 'group:red')).status).toBe(201);
    expect((await give(guarded, 'ann', 'editors')).status).toBe(201);
    const statusOf = async (key: string) => (await guarded.as(ann, 'GET', `/db/v1/tables/books/lookup/${key}`)).status;
    expect([await statusOf('a'), await statusOf('b')]).toEqual([200, 404]);
    const me = (await guarded.as(ann, 'GET', '/auth/v1/me')).body;
    expect(me).toMatchObject({ roles: ['editors', 'readers', 'group:red'], permissions: [table('books', 'read')] });
    const own = await guarded.asAdmin<string[]>('GET', '/auth/v1/subjects/ann/roles');
    expect(own.body).toEqual(['editors']);
    expect((await guarded.asAdmin('DELETE', '/auth/v1/subjects/role:editors/roles?role=readers')).status).toBe(204);
    expect(await statusOf('a')).toBe(404);
    expect((await guarded.as(ann, 'GET', '/auth/v1/me')).body).toMatchObject({ roles: ['editors'], permissions: [] });
  });

  test('never make a circle, nor a way to more than the giver has', async () => {
    await using guarded = await startGuardedServer();
    expect((await give(guarded, 'role:a', 'b')).status).toBe(201);
    expect((await give(guarded, 'role:b', 'group:c')).status).toBe(201);
    for (const [holder, role] of [
      ['group:c', 'a'],
      ['role:b', 'a'],
      ['role:a', 'a'],
    ] as const) {
      const refused = await give(guarded, holder, role);
      expect([holder, refused.status, refused.body.code]).toEqual([holder, 409, 'role_circle']);
    }
    expect((await give(guarded, 'role:a', 'ann')).status).toBe(201);
    const user = await guarded.asAdmin('POST', '/auth/v1/subjects/role:a/roles', { role: 'user:ann' });
    expect(user.body.code).toBe('invalid_name');
  });
});

describe('a grant of one model', () => {
  const model = (resource: string): Permission => ({ resource, resource_type: 'inference', type: 'read' });

  test('allows what names that model, and is told of no other', async () => {
    await using guarded = await startGuardedServer({ set: { '--models-dir': fixtureModels } });
    const ann = await guarded.user('ann', [model('tiny-chat'), model('chain')]);
    const ask = async (credential: string, path: string, body: object) =>
      (await guarded.as(credential, 'POST', path, body)).status;
    const messages = [{ role: 'user', content: 'hello' }];
    // The model is not installed: behind the guard it is not found.
    expect(await ask(ann, '/ai/v1/chat/completions', { model: 'tiny-chat', messages })).toBe(404);
    expect(await ask(ann, '/v1/chat/completions', { model: 'another', messages })).toBe(403);
    expect(await ask(ann, '/ai/v1/chat/completions', { model: 'tiny-chat', draft_model: 'another', messages })).toBe(
      403,
    );
    expect(await ask(ann, '/ai/v1/completions', { model: 'another', prompt: 'a' })).toBe(403);
    expect(await ask(ann, '/ai/v1/embeddings', { model: 'tiny-chat', input: 'a' })).toBe(404);
    expect(await ask(ann, '/ai/v1/embeddings', { model: 'another', input: 'a' })).toBe(403);
    expect(await ask(ann, '/ai/v1/rerank', { model: 'another', query: 'a', prompts: ['b'] })).toBe(403);
    expect(await ask(ann, '/rerank', { query: 'a', texts: ['b'] })).toBe(403);
    expect(await ask(ann, '/ai/v1/chunk', { text: 'a' })).toBe(403);
    for (const path of ['/ai/v1/tokenize', '/tokenize', '/api/generate', '/ai/v1/predict', '/ai/v1/models/load']) {
      const body = { prompt: 'a', input: [[1]] };
      expect([path, await ask(ann, path, { ...body, model: 'tiny-chat' })]).toEqual([path, 404]);
      expect([path, await ask(ann, path, { ...body, model: 'another' })]).toEqual([path, 403]);
    }
    expect(await ask(ann, '/ai/v1/models/unload', { model: 'tiny-chat' })).toBe(403);
    const listed = (await guarded.as(ann, 'GET', '/ai/v1/models')).body;
    expect((listed.data as { id: string }[]).map(({ id }) => id)).toEqual(['chain']);
    expect(Object.keys({ ...(listed.chunkers as object), ...(listed.embedders as object) })).toEqual([]);
    const tags = await guarded.as<{ models: { name: string }[] }>(ann, 'GET', '/api/tags');
    expect(tags.body.models.map(({ name }) => name)).toEqual(['chain:latest']);
    expect((await guarded.as(ann, 'GET', '/api/ps')).body).toEqual({ models: [] });
    expect((await guarded.as(ann, 'GET', '/ai/v1/models/chain')).status).toBe(200);
    expect((await guarded.as(ann, 'GET', '/ai/v1/models/tiny-bert')).body.reason).toBe('model_not_found');
  });

  test('holds for every route that names models', async () => {
    await using guarded = await startGuardedServer({ set: { '--models-dir': fixtureModels } });
    const ann = await guarded.user('ann', [model('mine')]);
    const texts = ['a'];
    const bodies: readonly [path: string, body: (name: string) => object, status?: number][] = [
      ['/ai/v1/responses', (name) => ({ model: name, input: 'a' })],
      ['/ai/v1/extract', (name) => ({ model: name, texts, schema: { entities: ['a'] } })],
      ['/ai/v1/extract', (name) => ({ model: 'mine', texts, schema: {}, options: { reader: { model: name } } }), 400],
      ['/ai/v1/recognize', (name) => ({ model: name, texts, labels: ['a'] })],
      ['/ai/v1/classify', (name) => ({ model: name, texts, labels: ['a'] })],
      ['/ai/v1/rewrite', (name) => ({ model: name, inputs: texts })],
      ['/ai/v1/read', (name) => ({ model: name, images: [{ url: 'data:image/png;base64,AAAA' }] })],
      ['/ai/v1/transcribe', (name) => ({ model: name, audio: 'AAAA' })],
      ['/embed', (name) => ({ model: name, inputs: 'a' })],
      ['/embed', (name) => ({ model: name, input: 'a' })],
      ['/ai/v1/generate/batch', (name) => ({ requests: [{ custom_id: 'a', body: { model: name } }] }), 200],
    ];
    for (const [path, bodyOf, status = 404] of bodies) {
      const answered = async (name: string) => (await guarded.as(ann, 'POST', path, bodyOf(name))).status;
      expect([path, await answered('mine'), await answered('another')]).toEqual([path, status, 403]);
    }
    const items = ['mine', 'another'].map((name) => ({ custom_id: name, body: { model: name, messages: [] } }));
    expect((await guarded.as(ann, 'POST', '/ai/v1/generate/batch', { requests: items })).status).toBe(403);
    expect((await guarded.as(ann, 'POST', '/embed', { inputs: 'a' })).status).toBe(403);
    for (const [name, status] of [
      ['mine', 404],
      ['another', 403],
    ] as const) {
      const form = new FormData();
      form.set('model', name);
      form.set('file', new Blob(['a']), 'a.wav');
      const headers = { authorization: ann };
      const url = `${guarded.server.url}/ai/v1/audio/transcriptions`;
      expect([name, (await fetch(url, { method: 'POST', headers, body: form })).status]).toEqual([name, status]);
    }
  });

  test('lists that predictor and no other', async () => {
    await using guarded = await startGuardedServer({ set: { '--ml-dir': fixturePredictors } });
    const [known = '', ...others] = Object.keys(
      (await guarded.asAdmin('GET', '/ml/v1/models')).body.predictors as object,
    );
    expect(others.length).toBeGreaterThan(0);
    const ann = await guarded.user('ann', [model(known)]);
    for (const path of ['/ml/v1/models', '/ml/v1/predictors', '/ai/v1/predictors']) {
      const { status, body } = await guarded.as<{ predictors: object }>(ann, 'GET', path);
      expect([path, status, Object.keys(body.predictors)]).toEqual([path, 200, [known]]);
    }
  });

  test('holds for keys: one of a model, of a user that may use all', async () => {
    await using guarded = await startGuardedServer();
    await guarded.user('ann', [model('*')]);
    const { credential } = await guarded.key('ann', { permissions: [model('tiny-chat')] });
    const statusOf = async (name: string) =>
      (await guarded.as(credential, 'POST', '/ai/v1/embeddings', { model: name, input: 'a' })).status;
    expect([await statusOf('tiny-chat'), await statusOf('another')]).toEqual([404, 403]);
    await guarded.user('bob', [model('tiny-chat')]);
    const refused = await guarded.asAdmin('POST', '/auth/v1/users/bob/api-keys', {
      name: 'more',
      permissions: [model('another')],
    });
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
  });
});

describe('a grant to manage one model', () => {
  test('unloads, fetches and deletes that one, and uses none', async () => {
    await using guarded = await startGuardedServer();
    const manager = await guarded.user('manager', [{ resource: 'mine', resource_type: 'inference', type: 'write' }]);
    const statusOf = async (method: string, path: string, model: string) =>
      (await guarded.as(manager, method, path, { model })).status;
    for (const [method, path] of [
      ['POST', '/ai/v1/models/unload'],
      ['DELETE', '/api/delete'],
      ['POST', '/api/pull'],
    ] as const) {
      expect([path, await statusOf(method, path, 'mine')]).toEqual([path, 404]);
      expect([path, await statusOf(method, path, 'another')]).toEqual([path, 403]);
    }
    expect(await statusOf('POST', '/ai/v1/models/load', 'mine')).toBe(403);
    expect((await guarded.as(manager, 'GET', '/ai/v1/models')).status).toBe(403);
  });
});

describe('write access to inference alone', () => {
  test('asks models through connections, those of this server and of others, and nothing below /ai/v1', async () => {
    const file = 'connections: {words: {kind: inference, inference: {provider: mock, names: [m]}}}';
    await using guarded = await startGuardedServer({ file });
    const writer = await guarded.user('writer', [{ resource: '*', resource_type: 'inference', type: 'write' }]);
    const chunk = { text: 'one two', config: { model: 'fixed', target_tokens: 1 } };
    const asked: [path: string, body: object, status: number][] = [
      ['/db/v1/connections/local-inference/inference/chunk', chunk, 200],
      ['/db/v1/connections/words/inference/embed', { input: 'a' }, 200],
      ['/ai/v1/chunk', chunk, 403],
    ];
    for (const [path, body, status] of asked) {
      expect([path, (await guarded.as(writer, 'POST', path, body)).status]).toEqual([path, status]);
    }
  });
});

describe('models in queries', () => {
  const embedder = { provider: 'mock', model: 'words', dimensions: 16 };
  const model = (resource: string): Permission => ({ resource, resource_type: 'inference', type: 'read' });

  async function withMeaning(guarded: GuardedServer): Promise<void> {
    const indexes = { meaning: { type: 'embeddings', field: 'text', embedder } };
    await guarded.asAdmin('POST', '/db/v1/tables/notes', { indexes });
    const batch = { inserts: { a: { text: 'a plan' } }, sync_level: 'enrichments' };
    expect((await guarded.asAdmin('POST', '/db/v1/tables/notes/batch', batch)).status).toBe(201);
  }

  test('the embedder of an index works for whoever may read the table; media of a template need its model', async () => {
    await using guarded = await startGuardedServer();
    await withMeaning(guarded);
    const reader = await guarded.user('reader', [table('notes', 'read')]);
    const ask = (credential: string, more: object = {}) =>
      guarded.as(credential, 'POST', '/db/v1/tables/notes/query', { semantic_search: 'plan', ...more });
    expect((await ask(reader)).status).toBe(200);
    const media = { embedding_template: '{{media url="http://127.0.0.1:1/a.png"}}', indexes: ['meaning'] };
    expect((await ask(reader, media)).body.code).toBe('forbidden');
    // A grant of one model is one of this server, not of another provider that calls a model the same.
    const named = await guarded.user('named', [table('notes', 'read'), model('words')]);
    expect((await ask(named, media)).body.code).toBe('forbidden');
    const all = await guarded.user('all', [table('notes', 'read'), model('*')]);
    expect((await ask(all, media)).body.code).not.toBe('forbidden');
  });

  test('a reranker that a request names needs the grant to use that model', async () => {
    await using guarded = await startGuardedServer();
    await withMeaning(guarded);
    const ask = async (credential: string, reranker: object) => {
      const request = { semantic_search: 'plan', reranker: { field: 'text', ...reranker } };
      return (await guarded.as(credential, 'POST', '/db/v1/tables/notes/query', request)).status;
    };
    const own = { provider: 'service', model: 'ours' };
    const reader = await guarded.user('reader', [table('notes', 'read')]);
    const named = await guarded.user('named', [table('notes', 'read'), model('ours')]);
    // Behind the guard: the model is not installed.
    expect([await ask(reader, own), await ask(named, own)]).toEqual([403, 502]);
    expect(await ask(named, { ...own, model: 'another' })).toBe(403);
    expect(await ask(named, { ...own, url: 'http://127.0.0.1:1' })).toBe(403);
    expect(await ask(named, { provider: 'mock', model: 'ours' })).toBe(403);
  });
});

describe('a table that is made again under its name', () => {
  test('is not there for those who read the one before, also after a restart; its administrator has the name', async () => {
    using directory = new TemporaryDirectory();
    const start = () => startGuardedServer({ directory: directory.path });
    let guarded = await start();
    await withTables(guarded);
    const reader = await guarded.user('reader', [table('books', 'read'), table('plates', 'read')]);
    const owner = await guarded.user('owner', [table('books', 'admin')]);
    await guarded.asAdmin('POST', '/auth/v1/subjects/role:writers/permissions', table('books', 'write'));
    expect((await guarded.as(owner, 'DELETE', '/db/v1/tables/books')).status).toBe(204);
    expect((await guarded.as(owner, 'POST', '/db/v1/tables/books', {})).status).toBe(200);
    const check = async () => {
      const lookup = await guarded.as(reader, 'GET', '/db/v1/tables/books');
      expect([lookup.status, lookup.body.code]).toEqual([404, 'table_not_found']);
      expect((await guarded.as(reader, 'GET', '/db/v1/tables/plates')).status).toBe(200);
      expect((await guarded.asAdmin('GET', '/auth/v1/subjects/role:writers/permissions')).body).toEqual([] as never);
      expect((await guarded.as(owner, 'GET', '/db/v1/tables/books')).status).toBe(200);
    };
    await check();
    await guarded[Symbol.asyncDispose]();
    guarded = await start();
    await check();
    await guarded[Symbol.asyncDispose]();
  });
});

test('a restore over a table keeps what is granted on it', async () => {
  using place = new BackupPlace();
  await using guarded = await startGuardedServer({ file: place.file });
  await withTables(guarded);
  const reader = await guarded.user('reader', [table('books', 'read')]);
  const request = { backup_id: 'b', location: place.location, table_names: ['books'] };
  expect((await guarded.asAdmin('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
  await guarded.asAdmin('POST', '/db/v1/tables/books/batch', { deletes: ['a'], sync_level: 'full_index' });
  const statusOf = async (key: string) => (await guarded.as(reader, 'GET', `/db/v1/tables/books/lookup/${key}`)).status;
  expect(await statusOf('a')).toBe(404);
  const server = { send: guarded.asAdmin.bind(guarded) as typeof guarded.server.send };
  const { phase } = await restore(server, { ...request, restore_mode: 'overwrite' });
  expect([phase, await statusOf('a')]).toEqual(['succeeded', 200]);
});
