import { expect, test } from 'bun:test';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installedGpus } from '../../src/model-host/available-backends.ts';
import { openBinding } from '../../src/model-host/backends/llama/binding.ts';
import { describeModel } from '../../src/models/installed-model.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel, openTestPool } from '../support/inference/inference-pool.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const chain = fixtureModel('generators', 'chain');
const tinyBert = fixtureModel('embedders', 'tiny-bert');

test('what a model turned out to be is told', async () => {
  await using host = openTestPool();
  expect(await host.pool.info(chain)).toMatchObject({
    contextTokens: 1_024,
    eosText: '<|im_end|>',
    threads: { prefill: 1, decode: 1 },
  });
  const probed = fixtureModel('generators', 'chain', { threads: 0, contextTokensMax: 100_000 });
  const info = await host.pool.info({ ...probed, name: 'probed' });
  expect(await host.pool.info({ ...chain, name: 'without GPUs', cpuOnly: true })).toMatchObject({ device: 'cpu' });
  // The length of the file, not the allowed one.
  expect(info.contextTokens).toBe(4_096);
  expect(info.threads?.prefill).toBeGreaterThan(0);
});

test.skipIf(installedGpus().length > 0)('GPUs that do not work are passed over for the CPU', async () => {
  const { device } = await openBinding(['cuda', 'vulkan'], () => undefined);
  expect(device).toBe('cpu');
});

test('files that llama.cpp refuses, or that have changed since they were found, fail with the reason', async () => {
  using directory = new TemporaryDirectory();
  const { path } = directory;
  cpSync(join(chain.model?.directory ?? '', 'model.gguf'), join(path, 'model.gguf'));
  await using host = openTestPool();
  const bytes = readFileSync(join(path, 'model.gguf'));
  const load = (name: string) =>
    host.pool.info({ ...chain, name, model: describeModel('generators', name, path) }).catch((error: unknown) => error);
  const swap = (from: string, to: string) => {
    const changed = Buffer.from(bytes);
    changed.write(to, changed.indexOf(from), 'latin1');
    writeFileSync(join(path, 'model.gguf'), changed);
  };
  swap('output_norm.weight', 'output_morn.weight');
  expect(await load('renamed')).toMatchObject({
    code: 'model_load_failed',
    message: expect.stringContaining('llama.cpp refuses its weights'),
    // The messages of llama.cpp are for the log.
    cause: expect.objectContaining({ message: expect.stringMatching(/output_norm/) }),
  });
  const described = describeModel('generators', 'cut', path);
  writeFileSync(join(path, 'model.gguf'), bytes.subarray(0, bytes.length / 2));
  const cut = await host.pool.info({ ...chain, name: 'cut', model: described }).catch((error: unknown) => error);
  expect(cut).toMatchObject({ code: 'model_load_failed', message: expect.stringMatching(/up to byte/) });
  expect(host.crashes).toEqual([]);
  expect(await host.pool.run(chain, 'generate', generateInput('hello'))).toMatchObject({ text: ' from the chain.' });
});

test('files that ONNX Runtime refuses fail without its words, which are for the log', async () => {
  using directory = new TemporaryDirectory();
  const { path } = directory;
  cpSync(tinyBert.model?.directory ?? '', path, { recursive: true });
  const weights = join(path, 'onnx', 'model.onnx');
  const described = describeModel('embedders', 'changed', path);
  // The name of an operator that does not exist, as long as the one that does.
  const bytes = readFileSync(weights);
  bytes.write('MatNul', bytes.indexOf('MatMul'), 'latin1');
  writeFileSync(weights, bytes);
  await using host = openTestPool();
  const refused = await host.pool
    .info({ ...tinyBert, name: 'changed', model: described })
    .catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: 'model_load_failed',
    message: 'the model "changed" cannot be loaded: ONNX Runtime refuses its files; the log has the details',
    cause: expect.objectContaining({ message: expect.stringMatching(/MatNul/) }),
  });
});
