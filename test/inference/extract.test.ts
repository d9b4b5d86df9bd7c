import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { colouredImage, red } from '../support/files/coloured-image.ts';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/models/', import.meta.url));

interface ExtractAnswer extends Record<string, unknown> {
  data: Record<string, unknown>[];
}

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ set: { '--models-dir': fixtures, '--allow-downloads': 'false' } });
});
afterAll(async () => await server[Symbol.asyncDispose]());

const extract = (body: object, path = 'extract') =>
  server.send<ExtractAnswer>('POST', `/ai/v1/${path}`, { model: 'tiny-spans', ...body });
const score = (words: number) => expect.closeTo(1 / (1 + Math.exp(-4 - 0.5 * (words - 1))), 5);

describe('POST /ai/v1/extract with an extractor', () => {
  const schema = { entities: ['animal', 'colour', 'person'] };

  test('answers spans in characters with labels and scores', async () => {
    const inputs = [
      { id: 'n1', content: '🎉 The king and a quick brown fox.' },
      { content: { type: 'text', text: 'king queen' }, id: null },
      { content: '' },
    ];
    const { status, body } = await extract({ inputs, schema });
    expect([status, body.object, body.model]).toEqual([200, 'extraction', 'tiny-spans']);
    expect(body.data).toEqual([
      {
        id: 'n1',
        index: 0,
        entities: [
          { label: 'person', text: 'king', start: 6, end: 10, score: score(1) },
          { label: 'colour', text: 'brown', start: 23, end: 28, score: score(1) },
          { label: 'animal', text: 'fox', start: 29, end: 32, score: score(1) },
        ],
      },
      { index: 1, entities: [{ label: 'person', text: 'king queen', start: 0, end: 10, score: score(2) }] },
      { index: 2, entities: [] },
    ]);
  });

  test('has images read by a reader', async () => {
    const image = { type: 'image_url', image_url: { url: await colouredImage([red, red, red, red]) } };
    const inputs = [{ content: [{ type: 'text', text: 'the fox' }, image] }, { content: 'king' }];
    const { status, body } = await extract({ inputs, schema, options: { reader: { model: 'tiny-reader' } } });
    const labels = (body.data as { entities: { label: string; text: string }[] }[]).map(({ entities }) =>
      entities.map(({ label, text }) => `${label} ${text.split(' ')[0]}`),
    );
    expect([status, labels]).toEqual([200, [['animal fox', 'colour red'], ['person king']]]);
    const unread = await extract({ inputs, schema });
    expect([unread.status, String(unread.body.error)]).toEqual([400, expect.stringContaining('inputs[0].content[1]')]);
    const gone = await extract({ inputs, schema, options: { reader: { model: 'gone' } } });
    expect(gone.status).toBe(404);
  });

  test('lets entities nest when it is asked to, and keeps to the threshold', async () => {
    const inputs = [{ content: 'king queen' }];
    const nested = await extract({ inputs, schema, options: { flat_ner: false } });
    const found = nested.body.data[0]?.entities as { text: string }[] | undefined;
    expect(found?.map(({ text }) => text)).toEqual(['king queen', 'king', 'queen']);
    const none = await extract({ inputs, schema, options: { threshold: 0.999 } });
    expect(none.body.data[0]?.entities).toEqual([]);
  });

  test('reads texts that are longer than the model takes', async () => {
    const { body } = await extract({ inputs: [{ content: 'a quick cat runs fast . '.repeat(30) }], schema });
    const found = body.data[0]?.entities as { text: string; start: number }[];
    expect(found.map(({ start }) => start)).toEqual(Array.from({ length: 30 }, (_, at) => 8 + 24 * at));
  });

  test('recognises in the older form too, and says what it cannot find', async () => {
    const older = await extract({ texts: ['a red dog'], labels: ['colour'] }, 'recognize');
    expect(older.body.data[0]).toMatchObject({ index: 0, entities: [{ label: 'colour', text: 'red' }] });
    const { status, body } = await extract({
      inputs: [{ content: 'a' }],
      schema: { ...schema, relations: [{ type: 'eats' }] },
    });
    expect([status, String(body.error).split(':')[0]]).toEqual([400, 'model_not_supported']);
    expect(body.message).toContain('not relations; a generator can be named');
    expect((await extract({ texts: ['a'], labels: ['b'] }, 'classify')).status).toBe(400);
  });
});

describe('POST /ai/v1/extract with a generator', () => {
  test('its output is held to the schema', async () => {
    const { status, body } = await extract({
      model: 'chain',
      texts: ['count'],
      schema: { thing: ['size::[small|large]::str'] },
    });
    expect([status, body.model]).toEqual([200, 'chain']);
    const results = body.data[0]?.results as { thing: { size?: string }[] } | undefined;
    for (const { size } of results?.thing ?? []) {
      expect(['small', 'large', undefined]).toContain(size);
    }
    const whole = await extract({
      model: 'chain',
      inputs: [{ content: 'count' }],
      schema: { entities: ['x'], relations: [{ type: 'r' }], structures: { s: { fields: { f: 'str', g: 'list' } } } },
    });
    expect(whole.status).toBe(200);
    expect(Object.keys(whole.body.data[0] ?? {})).toEqual(['index', 'entities', 'relations', 'structures']);
    const classes = await extract({ model: 'chain', texts: ['count', 'hello'], labels: ['glad', 'sad'] }, 'classify');
    for (const { classifications } of classes.body.data) {
      expect(classifications).toEqual([
        { name: 'label', label: expect.stringMatching(/^(glad|sad)$/), score: expect.any(Number) },
      ]);
    }
    expect((classes.body.usage as { completion_tokens: number }).completion_tokens).toBeGreaterThan(0);
  });
});

describe('what cannot be asked', () => {
  test('is refused by name', async () => {
    const inputs = [{ content: 'a' }];
    const cases: [object, number, string][] = [
      [{ inputs, schema: {} }, 400, 'asks for nothing'],
      [{ inputs, schema: { entities: [] } }, 400, 'asks for nothing'],
      [{ inputs, schema: { entitees: ['x'] } }, 400, 'unknown member "schema.entitees"'],
      [{ inputs, texts: ['a'], schema: { entities: ['x'] } }, 400, 'one of "inputs" and "texts"'],
      [{ schema: { entities: ['x'] } }, 400, 'one of "inputs" and "texts"'],
      [{ inputs, schema: { relations: [{ type: 'r' }] } }, 400, 'needs schema.entities'],
      [{ inputs, schema: { structures: { a: { fields: {} } } } }, 400, 'schema.structures.a has no fields'],
      [{ texts: ['a'], schema: { a: ['::'] } }, 400, 'is not a field'],
      [
        { inputs: [{ content: [{ type: 'image_url', image_url: 'data:' }] }], schema: { entities: ['x'] } },
        400,
        'invalid_media',
      ],
      [{ inputs, schema: { entities: ['x'.repeat(60)] } }, 400, 'the labels have'],
      [{ model: 'gone', inputs, schema: { entities: ['x'] } }, 404, 'among the extractors'],
      [{ inputs, schema: { entities: ['x'] }, options: { reader: {} } }, 400, 'options.reader'],
      [
        { model: 'chain', inputs: [...inputs, { content: 'x'.repeat(5_000) }], schema: { entities: ['x'] } },
        400,
        "input 1: this model's maximum context length",
      ],
    ];
    for (const [body, status, words] of cases) {
      const { status: found, body: answer } = await extract(body);
      expect([found, String(answer.error).includes(words) ? words : answer.error]).toEqual([status, words]);
    }
  });
});
