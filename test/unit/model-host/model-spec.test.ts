import { expect, test } from 'bun:test';
import { specOfModel } from '../../../src/model-host/model-spec.ts';
import { describeModel } from '../../../src/models/installed-model.ts';

const directory = Bun.fileURLToPath(new URL('../../fixtures/models/generators/', import.meta.url));
const settings = { threads: 1, contextTokensMax: 1_000, parallelSequences: 3 };

test('a generator is expected to take its weights and its first, short state', () => {
  const [name = ''] = [...new Bun.Glob('*/*.gguf').scanSync({ cwd: directory })].map(
    (path) => path.split('/')[0] ?? '',
  );
  const model = describeModel('generators', name, `${directory}${name}`);
  const perToken = model.kvCacheBytesPerToken ?? 0;
  expect(perToken).toBeGreaterThan(0);
  expect(specOfModel(model, settings).bytes).toBe(model.bytes + perToken * 512 * 3);
  const short = { ...model, manifest: { ...model.manifest, context_length: 100 } };
  expect(specOfModel(short, settings).bytes).toBe(model.bytes + perToken * 300);
});
