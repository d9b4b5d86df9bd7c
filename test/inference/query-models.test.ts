import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { blue, colouredImage, green, red } from '../support/files/coloured-image.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

/** Queries that use the models of this server. */

interface Answer {
  responses: [{ hits: { hits: { _id: string; _score: number; _index_scores?: Record<string, number> }[] } }];
  code?: string;
  error?: string;
}

const models = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));
const cross = await Bun.file(`${models}rerankers/tiny-cross/reference.json`).json();
let server: TestServer;

const query = (request: object) => server.send<Answer>('POST', '/db/v1/tables/pairs/query', request);

beforeAll(async () => {
  server = await startTestServer({ set: { '--models-dir': models, '--allow-downloads': 'false' } });
  await server.send('POST', '/db/v1/tables/pairs', {});
  const inserts = { dog: { text: 'a dog' }, pair: { text: cross.pair }, none: { other: 1 } };
  await server.send('POST', '/db/v1/tables/pairs/batch', { inserts, sync_level: 'full_index' });
});
afterAll(() => server[Symbol.asyncDispose]());

describe('a reranker of this server', () => {
  const reranker = { provider: 'service', model: 'tiny-cross', field: 'text' };

  test('scores as the same model does by itself', async () => {
    const asked = { full_text_search: { bool: { must: [{ match_all: {} }], should: [{ match: cross.text }] } } };
    const { status, body } = await query({ ...asked, reranker });
    expect([status, body.code]).toEqual([200, undefined]);
    const { hits } = body.responses[0].hits;
    const prompts = ['a dog', cross.pair];
    const alone = await server.send<{ data: { score: number }[] }>('POST', '/ai/v1/rerank', {
      model: 'tiny-cross',
      query: cross.text,
      prompts,
    });
    const scores = new Map(hits.map(({ _id, _score }) => [_id, _score]));
    expect(scores.get('dog')).toBeCloseTo(alone.body.data[0]?.score ?? 0, 5);
    expect(scores.get('pair')).toBeCloseTo(1 / (1 + Math.exp(-cross.logit)), 5);
    expect(hits.at(-1)?._id).toBe('none');
  });

  test('cuts what is too long for it', async () => {
    const text = 'the king sat on the mat . '.repeat(4_000);
    const inserts = { long: { text } };
    await server.send('POST', '/db/v1/tables/pairs/batch', { inserts, sync_level: 'full_index' });
    const { status } = await query({ full_text_search: { match: 'king mat', field: 'text' }, reranker });
    expect(status).toBe(200);
  });

  test('that is no reranker is a fault of the request', async () => {
    const { status, body } = await query({
      full_text_search: { match: 'dog', field: 'text' },
      reranker: { ...reranker, model: 'tiny-bert' },
    });
    expect([status, body.code]).toEqual([502, 'reranker_upstream_failure']);
  });
});

describe('an embedder of this server', () => {
  const texts = { king: 'the king sat on the mat .', dog: 'a dog', both: 'the king and a dog .' };

  test('makes the vectors of documents and of questions', async () => {
    const embedder = { provider: 'service', model: 'tiny-bert' };
    const meaning = { type: 'embeddings', field: 'text', embedder, distance_metric: 'cosine' };
    const created = await server.send('POST', '/db/v1/tables/meant', { indexes: { meaning } });
    expect([created.status, created.body.error]).toEqual([200, undefined]);
    const inserts = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, { text }]));
    await server.send('POST', '/db/v1/tables/meant/batch', { inserts, sync_level: 'enrichments' });
    for (const [key, semantic_search] of Object.entries(texts)) {
      const path = '/db/v1/tables/meant/query';
      const { body } = await server.send<Answer>('POST', path, { semantic_search, limit: 1 });
      const [hit] = body.responses[0].hits.hits;
      expect([hit?._id, hit?._score]).toEqual([key, expect.closeTo(1, 3)]);
      const words = { full_text_search: { match: 'dog', field: 'text' }, semantic_search, limit: 3 };
      expect((await server.send<Answer>('POST', path, words)).body.responses[0].hits.hits).toHaveLength(3);
    }
  });

  test('may make sparse vectors, beside another that makes dense ones', async () => {
    const index = (model: string, more: object) => ({
      type: 'embeddings',
      field: 'text',
      embedder: { provider: 'service', model },
      ...more,
    });
    const indexes = { terms: index('tiny-sparse', { sparse: true }), meaning: index('tiny-bert', {}) };
    const created = await server.send('POST', '/db/v1/tables/mixed', { indexes });
    expect([created.status, created.body.error]).toEqual([200, undefined]);
    const inserts = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, { text }]));
    await server.send('POST', '/db/v1/tables/mixed/batch', { inserts, sync_level: 'enrichments' });
    const asked = { semantic_search: texts.king, limit: 3 };
    const both = { ...asked, indexes: ['terms', 'meaning'] };
    const { body } = await server.send<Answer>('POST', '/db/v1/tables/mixed/query', both);
    const { hits } = body.responses[0].hits;
    const first = hits.find(({ _id }) => _id === 'king');
    expect(Object.keys(first?._index_scores ?? {})).toEqual(['terms', 'meaning']);
    const alone = { ...asked, indexes: ['terms'] };
    const sparse = await server.send<Answer>('POST', '/db/v1/tables/mixed/query', alone);
    // As with the vector that the model makes of the text when it is asked for it.
    const input = { model: 'tiny-sparse', input: texts.king };
    const made = await server.send<{ data: { embedding: object }[] }>('POST', '/ai/v1/embeddings', input);
    const given = { embeddings: { terms: made.body.data[0]?.embedding }, limit: 3 };
    const same = await server.send<Answer>('POST', '/db/v1/tables/mixed/query', given);
    expect(sparse.body.responses[0].hits).toEqual(same.body.responses[0].hits);
    expect(sparse.body.responses[0].hits.hits).toHaveLength(3);
    const which = await server.send<Answer>('POST', '/db/v1/tables/mixed/query', asked);
    expect([which.status, which.body.code]).toEqual([400, 'invalid_query']);
  });

  test('embeds chunks in view of one another where its index says so, and by themselves otherwise', async () => {
    const index = (late: boolean) => ({
      type: 'embeddings',
      field: 'text',
      embedder: { provider: 'service', model: 'tiny-bert' },
      chunker: { provider: 'service', late, text: { target_tokens: 4, separator: ' . ' } },
    });
    const indexes = { late: index(true), plain: index(false) };
    const created = await server.send('POST', '/db/v1/tables/context', { indexes });
    expect([created.status, created.body.error]).toEqual([200, undefined]);
    const inserts = {
      first: { text: 'the king runs . a dog sat' },
      other: { text: 'the fox runs . a dog sat' },
      single: { text: 'the king runs' },
    };
    const written = await server.send('POST', '/db/v1/tables/context/batch', { inserts, sync_level: 'full_index' });
    expect([written.status, written.body.status]).toEqual([201, 'committed']);
    type Vectors = Record<'late' | 'plain', number[][]>;
    const vectorsOf = async (key: string) => {
      const path = `/db/v1/tables/context/lookup/${key}?fields=_embeddings`;
      return (await server.send<{ _embeddings: Vectors }>('GET', path)).body._embeddings;
    };
    const [first, other, single] = [await vectorsOf('first'), await vectorsOf('other'), await vectorsOf('single')];
    expect([first.late.length, first.plain.length, single.late.length]).toEqual([2, 2, 1]);
    // The second chunk is the same text in both documents; only the late vector tells what stands before it.
    expect(first.plain[1]).toEqual(other.plain[1] as number[]);
    const distance = Math.hypot(...(first.late[1] ?? []).map((value, at) => value - (other.late[1]?.[at] ?? 0)));
    expect(distance).toBeGreaterThan(1e-4);
    for (const vector of first.late) expect(Math.hypot(...vector)).toBeCloseTo(1, 4);
    // A document changed to the other's text has the other's vectors.
    await server.send('POST', '/db/v1/tables/context/batch', {
      inserts: { first: inserts.other },
      sync_level: 'enrichments',
    });
    expect((await vectorsOf('first')).late).toEqual(other.late);
    const refused = async (more: object) => {
      const config = { ...index(true), ...more };
      const answer = await server.send('POST', '/db/v1/tables/context/indexes/refused', config);
      return [answer.status, String(answer.body.error)];
    };
    const overlap = { provider: 'service', late: true, text: { target_tokens: 4, overlap_tokens: 1 } };
    expect(await refused({ chunker: overlap })).toEqual([400, expect.stringContaining('overlap_tokens')]);
    const mock = { provider: 'mock', model: 'words' };
    expect(await refused({ embedder: mock })).toEqual([400, expect.stringContaining('a model of this server')]);
    const images = { provider: 'service', model: 'tiny-colours' };
    expect((await refused({ embedder: images }))[0]).toBeGreaterThanOrEqual(400);
  });

  test('embeds the image that a template of an index names, and finds it by another image', async () => {
    const embedder = { provider: 'service', model: 'tiny-colours' };
    const photos = { type: 'embeddings', template: '{{media url=photo}}', embedder, distance_metric: 'cosine' };
    const created = await server.send('POST', '/db/v1/tables/album', { indexes: { photos } });
    expect([created.status, created.body.error]).toEqual([200, undefined]);
    const inserts = {
      sunset: { photo: await colouredImage([red, red, red, blue]) },
      forest: { photo: await colouredImage([green, green, green, blue]) },
      untitled: {},
    };
    const written = await server.send('POST', '/db/v1/tables/album/batch', { inserts, sync_level: 'full_index' });
    expect([written.status, written.body.status]).toEqual([201, 'committed']);
    const asked = { embedding_template: '{{media url=this}}', indexes: ['photos'], limit: 1 };
    for (const [colour, key] of [
      [red, 'sunset'],
      [green, 'forest'],
    ] as const) {
      const semantic_search = await colouredImage([colour, colour, colour, colour]);
      const { status, body } = await server.send<Answer>('POST', '/db/v1/tables/album/query', {
        ...asked,
        semantic_search,
      });
      expect([status, body.code]).toEqual([200, undefined]);
      expect(body.responses[0].hits.hits.map(({ _id }) => _id)).toEqual([key]);
    }
  });

  test('that is not installed is refused when the index is created', async () => {
    const embedder = { provider: 'service', model: 'tiny-brt' };
    const config = { type: 'embeddings', field: 'text', embedder };
    const { status, body } = await server.send('POST', '/db/v1/tables/meant/indexes/other', config);
    expect([status, body.code]).toEqual([404, 'model_not_found']);
  });
});

describe('images in the template of a reranker', () => {
  const template = '{{text}}{{#if photo}}{{media url=photo}}{{/if}}';
  const rank = (reranker: object) =>
    server.send<Answer>('POST', '/db/v1/tables/photos/query', {
      full_text_search: { query: 'red fox OR n:>0' },
      reranker: { model: 'tiny-pages', template, ...reranker },
    });

  beforeAll(async () => {
    await server.send('POST', '/db/v1/tables/photos', {});
    const inserts = {
      fox: { n: 1, text: 'the fox', photo: await colouredImage([red, red, red, red]) },
      plain: { n: 2, text: 'the fox' },
      sea: { n: 3, photo: await colouredImage([blue, blue, blue, blue]) },
      none: { n: 4 },
    };
    await server.send('POST', '/db/v1/tables/photos/batch', { inserts, sync_level: 'full_index' });
  });

  test('are looked at by one that looks at images, as they are by the same model alone, and documents without come last', async () => {
    const { status, body } = await rank({ provider: 'service' });
    expect([status, body.error]).toEqual([200, undefined]);
    const { hits } = body.responses[0].hits;
    const scores = new Map(hits.map(({ _id, _score }) => [_id, _score]));
    const image = async (colour: typeof red) => ({
      type: 'image_url',
      image_url: await colouredImage([colour, colour, colour, colour]),
    });
    const words = { type: 'text', text: 'the fox' };
    const documents = [{ content: [words, await image(red)] }, { content: [words] }, { content: [await image(blue)] }];
    const alone = await server.send<{ data: { score: number }[] }>('POST', '/ai/v1/rerank_multimodal', {
      model: 'tiny-pages',
      query: 'red fox OR n:>0',
      documents,
    });
    expect(alone.status).toBe(200);
    for (const [at, key] of ['fox', 'plain', 'sea'].entries()) {
      expect([key, scores.get(key)]).toEqual([key, expect.closeTo(alone.body.data[at]?.score ?? Number.NaN, 4)]);
    }
    expect(hits[0]?._id).toBe('fox');
    expect(hits.at(-1)?._id).toBe('none');
  });

  test('go to another server like this one, which looks at them', async () => {
    const own = await rank({ provider: 'service' });
    const there = await rank({ provider: 'service', url: server.url });
    expect(there.status).toBe(200);
    expect(there.body.responses[0].hits.hits).toEqual(own.body.responses[0].hits.hits);
  });

  test.each([
    ['a model of this server', { provider: 'service', model: 'tiny-cross' }, 'the model "tiny-cross" reads text only'],
    ['a provider elsewhere', { provider: 'cohere', api_key: 'k', url: 'http://127.0.0.1:9' }, 'reranks texts'],
    ['words without a model', { provider: 'mock' }, 'reranks texts'],
  ])('are refused by name where %s reads texts', async (_, reranker, reason) => {
    const { status, body } = await rank(reranker);
    expect([status, body.code]).toEqual([400, 'model_not_supported']);
    expect(body.error).toContain(reason);
  });

  test('that cannot be read are told with the key of their document', async () => {
    await server.send('POST', '/db/v1/tables/broken', {});
    const inserts = { page: { text: 'a fox', photo: 'data:image/png;base64,AAAA' } };
    await server.send('POST', '/db/v1/tables/broken/batch', { inserts, sync_level: 'full_index' });
    const { status, body } = await server.send<Answer>('POST', '/db/v1/tables/broken/query', {
      full_text_search: { query: 'fox' },
      reranker: { provider: 'service', model: 'tiny-pages', template },
    });
    expect([status, body.code]).toEqual([400, 'invalid_media']);
    expect(body.error).toContain('document "page": media 1 of the template');
  });
});

test('the text of a page in the template of a reranker is read by every one of them', async () => {
  await server.send('POST', '/db/v1/tables/linked', {});
  const page = (text: string) => `data:text/html;base64,${btoa(`<p>${text}</p><script>x</script>`)}`;
  const inserts = { a: { n: 1, page: page('green leek soup') }, b: { n: 2, page: page('plum cake') } };
  await server.send('POST', '/db/v1/tables/linked/batch', { inserts, sync_level: 'full_index' });
  const { status, body } = await server.send<Answer>('POST', '/db/v1/tables/linked/query', {
    full_text_search: { query: 'cake OR n:>0' },
    reranker: { provider: 'mock', model: 'words', template: '{{media url=page}}' },
  });
  expect([status, body.responses[0].hits.hits[0]?._id]).toEqual([200, 'b']);
});
