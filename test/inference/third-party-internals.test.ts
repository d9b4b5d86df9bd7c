import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { Tokenizer } from '@huggingface/tokenizers';
import packageFile from '../../package.json' with { type: 'json' };
import { openBinding } from '../../src/model-host/backends/llama/binding.ts';

/**
 * Packages whose insides we use or change, at the versions where they were looked at. With a new version of one, a test
 * below fails, or the code that it names is looked at again and the version here is raised.
 */
test.each([
  ['@huggingface/jinja', '0.5.11', 'inference/templates/template-sandbox.ts changes its interpreter'],
  ['@huggingface/tokenizers', '0.2.0', 'model-host/backends/onnx/text/text-tokenizer.ts adds to its model'],
  [
    '@echogarden/kissfft-wasm',
    '0.2.0',
    'model-host/backends/onnx/sound/real-transform.ts calls its functions by address',
  ],
  ['node-llama-cpp', '3.22.1', 'model-host/backends/llama/binding.ts uses its native classes'],
  ['prom-client', '15.1.3', 'observability/metrics.ts loads four of its files'],
] as const)('%s is pinned at %s: %s', (name, version) => {
  expect(packageFile.dependencies[name]).toBe(version);
});

/** In a process of its own: the engine as it comes, without what the sandbox changes. */
function rendered(template: string): string {
  const script = `const { Template } = require('@huggingface/jinja'); process.stdout.write(JSON.stringify(new Template(process.argv[1]).render({})));`;
  const { stdout } = Bun.spawnSync([process.execPath, '-e', script, template], { cwd: import.meta.dir });
  return JSON.parse(stdout.toString());
}

describe('the template engine', () => {
  test('still loses what a turn of a loop has written when the turn is left', () => {
    // Where these fail, the flaw is mended: `loopControls` of the sandbox can go.
    expect(rendered('{% for x in [1, 2] %}{{ x }}{% break %}{% endfor %}')).toBe('');
    expect(rendered('{% for x in [1, 2] %}{{ x }}{% continue %}{% endfor %}')).toBe('');
  });

  test('has the two methods that are replaced, and names its controls as they are told by', () => {
    const path = Bun.resolveSync('@huggingface/jinja', import.meta.dir).replace(/[^/]*$/, 'index.cjs');
    const source = readFileSync(path, 'utf8');
    const loaded = { exports: {} as Record<string, { prototype: object }> };
    new Function('module', 'exports', source)(loaded, loaded.exports);
    const methods = Object.getOwnPropertyNames(loaded.exports.Interpreter?.prototype ?? {});
    expect(methods).toEqual(expect.arrayContaining(['evaluateBlock', 'evaluateFor']));
    expect(source).toMatch(/\bclass BreakControl\b|\bBreakControl\s*=\s*class\b/);
    expect(source).toMatch(/\bclass ContinueControl\b|\bContinueControl\s*=\s*class\b/);
  });
});

test('the model of a tokenizer knows its tokens both ways, in what we add to', () => {
  const vocab = { '[UNK]': 0, '[CLS]': 1, the: 2 };
  const parts = { decoder: null, post_processor: null, pre_tokenizer: null, normalizer: null };
  const file = { ...parts, model: { type: 'WordPiece', unk_token: '[UNK]', vocab }, added_tokens: [] };
  const tokenizer = new Tokenizer(file, {});
  const { model } = tokenizer;
  expect(model?.tokens_to_ids).toBeInstanceOf(Map);
  expect(model?.vocab).toEqual(['[UNK]', '[CLS]', 'the']);
  model?.tokens_to_ids.set('[SEP]', 3);
  if (model) model.vocab[3] = '[SEP]';
  expect([tokenizer.token_to_id('[SEP]'), tokenizer.id_to_token(3)]).toEqual([3, '[SEP]']);
});

test('the native classes of llama.cpp have the methods that are called', async () => {
  const { binding } = await openBinding([], () => undefined);
  // As `openModel` looks for AMX.
  expect(binding.systemInfo()).toMatch(/CPU : [A-Z0-9_]+ = 1 \| /);
  const methods = (type: { prototype: object }) => Object.getOwnPropertyNames(type.prototype);
  expect(methods(binding.AddonModel)).toEqual(
    expect.arrayContaining(
      'init dispose tokenize detokenize getTrainContextSize getEmbeddingVectorSize tokenBos tokenEos sepToken getTokenString getTokenAttributes isEogToken getVocabularyType shouldPrependBosToken shouldAppendEosToken'.split(
        ' ',
      ),
    ),
  );
  expect(methods(binding.AddonContext)).toEqual(
    expect.arrayContaining(
      'init dispose initBatch addToBatch decodeBatch sampleToken removeTokenCellsFromSequence disposeSequence getSequenceKvCacheMinPosition copySequenceStateFromOtherSequence getEmbedding setThreads ensureDraftContextIsCompatibleForSpeculative'.split(
        ' ',
      ),
    ),
  );
  expect(methods(binding.AddonSampler)).toEqual(expect.arrayContaining(['dispose', 'applyConfig']));
  expect([typeof binding.getIsArchRecurrent, typeof binding.getIsArchHybrid]).toEqual(['function', 'function']);
});

test('the parts of the metrics client can be loaded one by one', async () => {
  const parts = ['counter', 'gauge', 'histogram', 'registry'];
  const loaded = await Promise.all(parts.map((part) => import(`prom-client/lib/${part}.js`)));
  for (const { default: part } of loaded) expect(typeof part).toBe('function');
});
