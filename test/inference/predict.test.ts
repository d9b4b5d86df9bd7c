import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { startTestServer, type TestServer } from '../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../fixtures/predictors/', import.meta.url));

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({
    set: { '--ml-dir': fixtures },
    environment: { SUNDEW__INFERENCE__MAX_LOADED_MODELS: '3' },
  });
});
afterAll(async () => await server[Symbol.asyncDispose]());

const predict = (body: object, plane = 'ai') => server.send('POST', `/${plane}/v1/predict`, body);

describe('POST /ai/v1/predict', () => {
  test.each(['tree-regressor', 'tree-classifier', 'linear', 'svm', 'forest', 'boosted'])(
    '%s says what it says in Python',
    async (model) => {
      const { rows, label, ...said } = await Bun.file(`${fixtures}${model}/reference.json`).json();
      const [wanted] = Object.values<number[][]>(said);
      const task = label === undefined ? 'regression' : 'classification';
      for (const plane of ['ai', 'ml']) {
        const { status, body } = await predict({ model, input: rows }, plane);
        expect([status, body.model, body.task]).toEqual([200, model, task]);
        // The reference is rounded to six places.
        const [found, expected] = [(body.predictions as number[][]).flat(), (wanted ?? []).flat()];
        expect(found).toHaveLength(expected.length);
        for (const [at, value] of found.entries()) expect(Math.abs(value - (expected[at] ?? 0))).toBeLessThan(6e-7);
      }
    },
  );

  test('answers many rows in their order, and none for none', async () => {
    const input = Array.from({ length: 10_000 }, (_, at) => [at, 1]);
    const { body } = await predict({ model: 'linear', input });
    // 2 x0 - x1 + 0.5
    expect(body.predictions).toEqual(input.map(([x = 0]) => [2 * x - 0.5]));
    expect((await predict({ model: 'linear', input: [] })).body.predictions).toEqual([]);
  });

  test('refuses rows that do not fit', async () => {
    const cases: [object | string, number, string][] = [
      [{ model: 'linear', input: [[1, 2], [1]] }, 400, 'row 1 of "input" has 1 numbers; the model takes 2'],
      [{ model: 'linear', input: [[1, 2, 3]] }, 400, 'row 0'],
      ['{"model":"linear","input":[[1,NaN]]}', 400, 'invalid_json'],
      [{ model: 'linear', input: [[1, null]] }, 400, 'input.0.1'],
      ['{"model":"linear","input":[[1,1e999]]}', 400, 'number'],
      [
        {
          model: 'linear',
          input: [
            [1, 2],
            [3e38, 2],
          ],
        },
        400,
        'row 1 of "input": the model answers Infinity in column 0',
      ],
      [{ model: 'linear', input: [[1e300, 1e300]] }, 400, 'row 0 of "input": the model answers NaN in column 0'],
      [{ model: 'linear', inputs: [[1, 2]], input: [] }, 400, 'unknown member "inputs"; did you mean "input"?'],
      [{ model: 'liner', input: [[1, 2]] }, 404, 'Did you mean "linear"?'],
      [{ model: 'forest-zipmap', input: [[1, 2]] }, 500, 'zipmap: False'],
      [{ model: 'linear', input: new Array(100_001).fill([1, 2]) }, 400, 'a request may have 100000'],
    ];
    for (const [body, status, words] of cases) {
      const { status: found, body: answer } = await predict(body as object);
      expect([found, String(answer.error).includes(words) ? words : answer.error]).toEqual([status, words]);
    }
  });
});
