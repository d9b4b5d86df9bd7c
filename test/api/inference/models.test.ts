import { describe, expect, test } from 'bun:test';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { modelKinds } from '../../../src/protocol/models/model-kinds.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer } from '../../support/test-server.ts';

const fixtures = Bun.fileURLToPath(new URL('../../fixtures/', import.meta.url));
const models = `${fixtures}models`;

type Catalogue = Record<string, Record<string, unknown>>;
interface ModelList extends Record<string, unknown> {
  object: string;
  data: { id: string }[];
  backends: Record<string, boolean>;
}

function withModels(directory: string) {
  return startTestServer({ set: { '--models-dir': directory, '--ml-dir': `${fixtures}predictors` } });
}

describe('GET /ai/v1/models', () => {
  test('lists generators and embedders for OpenAI clients and every kind by name', async () => {
    await using server = await withModels(models);
    const { status, body } = await server.send<ModelList>('GET', '/ai/v1/models');
    expect(status).toBe(200);
    expect(body.object).toBe('list');
    expect(body.data.map(({ id }) => id)).toEqual([
      'chain',
      'filler',
      'tiny-bert',
      'tiny-bert-gguf',
      'tiny-colours',
      'tiny-sparse',
    ]);
    expect(body.data[0]).toEqual({
      id: 'chain',
      object: 'model',
      created: expect.any(Number),
      owned_by: 'local',
      type: 'generators',
      capabilities: ['tools', 'structured_output'],
      modalities: ['text'],
      context_length: 4096,
      context_source: 'model',
      max_model_len: 4096,
      architecture: { input_modalities: ['text'], output_modalities: ['text'] },
      loaded: false,
    } as never);
    expect(body.allow_downloads).toBe(true);
    expect(Object.keys(body.backends)).toEqual(['native', 'onnx', 'metal', 'cuda', 'xla', 'wasm']);
    expect((body.embedders as Catalogue)['tiny-bert']).toMatchObject({
      inputs: ['text'],
      dimensions: 32,
      backend: 'onnx',
    });
    expect((body.embedders as Catalogue)['tiny-sparse']).toMatchObject({ capabilities: ['sparse'], dimensions: 128 });
    expect(Object.keys(body.rerankers as Catalogue)).toEqual([
      'tiny-cross',
      'tiny-cross-gguf',
      'tiny-late',
      'tiny-pages',
    ]);
  });

  test('without any model every kind is there, and the fixed chunker', async () => {
    await using server = await startTestServer({
      set: { '--models-dir': '/nowhere', '--ml-dir': '/nowhere', '--allow-downloads': 'false' },
    });
    const { body } = await server.send<ModelList>('GET', '/ai/v1/models');
    expect([body.data, body.allow_downloads]).toEqual([[], false]);
    expect([body.classifiers, body.recognizers]).toEqual([{}, {}]);
    for (const kind of modelKinds) expect(body[kind]).toBeObject();
    expect(body.chunkers).toEqual({ fixed: { capabilities: [], inputs: ['text'], backend: 'built_in' } });
    expect((await server.send('GET', '/ai/v1/predictors')).body).toEqual({ object: 'list', predictors: {} });
  });
});

describe('GET /ai/v1/models/{id}', () => {
  test('takes names with an owner in every spelling, and base URLs that end in a slash', async () => {
    using directory = new TemporaryDirectory();
    cpSync(`${models}/embedders/tiny-bert`, join(directory.path, 'embedders/acme/tiny'), { recursive: true });
    await using server = await withModels(directory.path);
    const spellings = ['models/acme%2Ftiny', 'models/acme/tiny', '/models/acme%2Ftiny', '/models/acme//tiny'];
    for (const spelling of spellings) {
      const { status, body } = await server.send('GET', `/ai/v1/${spelling}`);
      expect([spelling, status, body.id, body.owned_by]).toEqual([spelling, 200, 'acme/tiny', 'acme']);
    }
    expect((await server.send<ModelList>('GET', '/ai/v1//models')).body.data).toHaveLength(1);
    expect((await server.send('GET', '/ai/v1/models/fixed')).body).toMatchObject({ id: 'fixed', type: 'chunkers' });
  });

  test('a model that is not there, and one that is refused, are 404 in the shape of the plane', async () => {
    using directory = new TemporaryDirectory();
    cpSync(`${models}/embedders/tiny-bert`, join(directory.path, 'embedders/tiny'), { recursive: true });
    writeFileSync(join(directory.path, 'embedders/tiny/onnx/model.onnx'), '<html>');
    await using server = await withModels(directory.path);
    const absent = await server.send('GET', '/ai/v1/models/gone');
    const message = 'no model named "gone" is installed; GET /ai/v1/models lists them';
    expect([absent.status, absent.body]).toEqual([
      404,
      {
        error: `model_not_found: ${message}`,
        message,
        reason: 'model_not_found',
        retryable: false,
        retry_after_ms: 0,
      },
    ]);
    expect(absent.headers.get('x-should-retry')).toBe('false');
    const refused = await server.send('GET', '/ai/v1/models/tiny');
    expect([refused.status, refused.body.reason, refused.headers.get('x-should-retry')]).toEqual([
      500,
      'model_load_failed',
      'false',
    ]);
    const used = await server.send('POST', '/ai/v1/embeddings', { model: 'tiny', input: 'a' });
    expect([used.status, used.body.reason]).toEqual([500, 'model_load_failed']);
    expect(refused.body.message).toContain('cannot be served: model.onnx');
    expect(server.logLines.some((line) => line.includes('a model cannot be served'))).toBe(true);
  });

  test('errors of the plane have its shape whatever they are', async () => {
    await using server = await withModels(models);
    const shape = async (method: string, path: string) => {
      const { status, body } = await server.send(method, path);
      return [status, String(body.error).split(':')[0], body.reason, body.retryable];
    };
    expect(await shape('GET', '/ai/v1/nothing')).toEqual([404, 'not_found', 'not_found', false]);
    expect(await shape('DELETE', '/ai/v1/models')).toEqual([405, 'method_not_allowed', 'method_not_allowed', false]);
    expect(await shape('GET', '/ai/v1/models/%ff')).toEqual([400, 'invalid_request', 'invalid_input', false]);
    expect((await server.send('GET', '/db/v1/nothing')).body.code).toBe('not_found');
  });
});

describe('predictors', () => {
  test('are listed under both prefixes', async () => {
    await using server = await withModels(models);
    for (const path of ['/ai/v1/predictors', '/ml/v1/predictors', '/ml/v1/models']) {
      const { status, body } = await server.send<{ object: string; predictors: Catalogue }>('GET', path);
      expect([status, body.object]).toEqual([200, 'list']);
      expect(Object.keys(body.predictors)).toHaveLength(6);
      expect(body.predictors.linear).toEqual({ task: 'regression', format: 'onnx', features: 2, outputs: 1 });
      expect(body.predictors.forest).toEqual({
        task: 'classification',
        format: 'onnx',
        features: 2,
        outputs: 2,
        classes: ['0', '1'],
      });
    }
  });
});
