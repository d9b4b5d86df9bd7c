import { describe, expect, test } from 'bun:test';
import { cpSync, mkdirSync, renameSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ModelRegistry, quantizedName } from '../../../src/models/model-registry.ts';
import { requireInstalled } from '../../../src/models/require-model.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const fixtures = Bun.fileURLToPath(new URL('../../fixtures/', import.meta.url));
const models = `${fixtures}models`;
const embedder = `${models}/embedders/tiny-bert`;

/** A models directory with copies of fixtures at the given places. */
function installed(directory: TemporaryDirectory, copies: Readonly<Record<string, string>>): string {
  for (const [place, from] of Object.entries(copies)) cpSync(from, join(directory.path, place), { recursive: true });
  return directory.path;
}

function registry(directory: string): ModelRegistry {
  return new ModelRegistry(directory, join(directory, 'predictors'));
}

function reasons(directory: string): Record<string, string> {
  return Object.fromEntries(registry(directory).refused.map(({ name, reason }) => [name, reason]));
}

describe('what is found', () => {
  test('a link in a circle, beside models or in one, keeps none of the others from being found', () => {
    using directory = new TemporaryDirectory();
    installed(directory, { 'embedders/whole': embedder, 'embedders/linked': embedder });
    symlinkSync('circle', join(directory.path, 'embedders/circle'));
    symlinkSync('circle', join(directory.path, 'embedders/linked/circle'));
    expect(registry(directory.path).models.map(({ name }) => name)).toContain('whole');
    expect(reasons(directory.path)).toEqual({ linked: 'its files cannot be read (ELOOP)' });
  });

  test('every kind has its directory, and what is missing in a manifest comes from the files', () => {
    const found = new ModelRegistry(models, `${fixtures}predictors`);
    const names = found.models.map(({ kind, name, backend }) => `${kind}/${name} ${backend}`);
    expect(names).toEqual([
      'chunkers/tiny-chunker onnx',
      'rerankers/tiny-cross onnx',
      'rerankers/tiny-cross-gguf native',
      'rerankers/tiny-late onnx',
      'rerankers/tiny-pages onnx',
      'embedders/tiny-bert onnx',
      'embedders/tiny-bert-gguf native',
      'embedders/tiny-colours onnx',
      'embedders/tiny-sparse onnx',
      'extractors/tiny-spans onnx',
      'generators/chain native',
      'generators/filler native',
      'rewriters/tiny-rewriter onnx',
      'readers/tiny-reader onnx',
      'transcribers/tiny-ear onnx',
      'transcribers/tiny-interpreter onnx',
    ]);
    expect(found.find('embedders', 'tiny-bert')?.manifest).toMatchObject({
      dimension: 32,
      context_length: 64,
      pooling: 'mean',
      inputs: ['text'],
      capabilities: [],
    });
    expect(found.find('embedders', 'tiny-sparse')?.manifest).toMatchObject({
      capabilities: ['sparse'],
      dimension: 128,
    });
    expect(found.find('generators', 'chain')?.manifest.chat_template).toContain('<|im_start|>');
    expect(found.find('generators', 'chain')?.manifest.context_length).toBe(4096);
  });

  test('predictors tell their task, and one that answers maps is refused with the way out', () => {
    const found = new ModelRegistry(models, `${fixtures}predictors`);
    const told = found.predictors.map(({ name, task, features, outputs }) => [name, task, features, outputs]);
    expect(told).toEqual([
      ['boosted', 'regression', 2, 1],
      ['forest', 'classification', 2, 2],
      ['linear', 'regression', 2, 1],
      ['svm', 'regression', 2, 1],
      ['tree-classifier', 'classification', 2, 2],
      ['tree-regressor', 'regression', 2, 1],
    ]);
    expect(found.refused).toEqual([
      { kind: 'predictors', name: 'forest-zipmap', reason: expect.stringContaining('zipmap: False') },
    ]);
  });

  test('directories that are not there hold nothing', () => {
    const none = new ModelRegistry('/nowhere/models', '/nowhere/predictors');
    expect([none.models, none.predictors, none.refused]).toEqual([[], [], []]);
  });

  test('a name may have an owner in front, and hidden directories are not looked at', () => {
    using directory = new TemporaryDirectory();
    installed(directory, { 'embedders/acme/tiny': embedder, 'embedders/.incoming': embedder });
    const found = registry(directory.path);
    expect(found.models.map(({ name }) => name)).toEqual(['acme/tiny']);
    expect(found.refused).toEqual([]);
  });
});

describe('quantised variants', () => {
  test('of two files the one of eight bits is used', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, { 'embedders/tiny': embedder });
    const onnx = join(path, 'embedders/tiny/onnx');
    cpSync(join(onnx, 'model.onnx'), join(onnx, 'model_quantized.onnx'));
    const model = registry(path).find('embedders', 'tiny');
    expect([model?.variant, model?.weights]).toEqual(['i8', 'onnx/model_quantized.onnx']);
    expect(model?.manifest.variants).toEqual({ full: 'onnx/model.onnx', i8: 'onnx/model_quantized.onnx' });
    const found = registry(directory.path);
    expect([found.find('embedders', 'tiny-i8'), found.findById('tiny-i8')]).toEqual([model, model]);
    expect([model && quantizedName(model), found.find('embedders', 'tiny-bert-i8')]).toEqual(['tiny-i8', undefined]);
  });

  test('NAME-i8 beside NAME is preferred, and both are listed', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, { 'embedders/tiny': embedder, 'embedders/tiny-i8': embedder });
    const found = registry(path);
    expect(found.models.map(({ name }) => name)).toEqual(['tiny', 'tiny-i8']);
    expect(found.find('embedders', 'tiny')?.name).toBe('tiny-i8');
    expect(found.findById('tiny')?.name).toBe('tiny');
  });

  test('models of two parts have both checked and counted', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, {
      'rewriters/whole': `${models}/rewriters/tiny-rewriter`,
      'rewriters/half': `${models}/rewriters/tiny-rewriter`,
      'rewriters/cut': `${models}/rewriters/tiny-rewriter`,
      'embedders/seeing': `${models}/embedders/tiny-colours`,
      'embedders/blind': `${models}/embedders/tiny-colours`,
    });
    const file = (place: string) => join(path, place);
    renameSync(file('rewriters/half/onnx/decoder_model.onnx'), file('rewriters/half/onnx/other.txt'));
    truncateSync(file('rewriters/cut/onnx/decoder_model.onnx'), 100);
    renameSync(file('embedders/blind/onnx/vision_model.onnx'), file('embedders/blind/onnx/other.txt'));
    const found = registry(path);
    const whole = found.find('rewriters', 'whole');
    expect(whole).toMatchObject({
      companions: { decoder: 'onnx/decoder_model.onnx' },
      weights: 'onnx/encoder_model.onnx',
    });
    const parts = ['encoder_model', 'decoder_model'].map((part) => file(`rewriters/whole/onnx/${part}.onnx`));
    expect(whole?.bytes).toBe(parts.reduce((sum, part) => sum + statSync(part).size, 0));
    expect(reasons(path).half).toContain('no decoder_model.onnx');
    expect(reasons(path).cut).toContain('decoder_model.onnx');
    expect(found.find('embedders', 'seeing')?.manifest.inputs).toEqual(['text', 'image']);
    expect(found.find('embedders', 'blind')?.manifest.inputs).toEqual(['text']);
  });

  test('two files with the same right need a manifest', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, { 'embedders/tiny': embedder });
    const folder = join(path, 'embedders/tiny');
    cpSync(join(folder, 'onnx/model.onnx'), join(folder, 'other.onnx'));
    expect(reasons(path).tiny).toMatch(/could both be the model/);
    writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ variants: { full: 'other.onnx' } }));
    expect(registry(path).find('embedders', 'tiny')?.weights).toBe('other.onnx');
  });
});

describe('manifests', () => {
  const withManifest = (directory: TemporaryDirectory, text: string) => {
    const path = installed(directory, { 'embedders/tiny': embedder });
    writeFileSync(join(path, 'embedders/tiny/manifest.json'), text);
    return path;
  };

  test('what is given wins', () => {
    using directory = new TemporaryDirectory();
    const given = { context_length: 48, pooling: 'cls', prefixes: { query: 'q: ' }, license: 'MIT' };
    const written = { ...given, schema_version: 2, files: [{ name: 'x' }] };
    const model = registry(withManifest(directory, JSON.stringify(written))).find('embedders', 'tiny');
    expect(model?.manifest).not.toHaveProperty('files');
    expect(model?.manifest).toMatchObject({ ...given, dimension: 32 });
    expect(model?.contextSource).toBe('manifest');
  });

  const wrong: readonly (readonly [manifest: unknown, reason: RegExp])[] = [
    [{ capabilties: ['sparse'] }, /"capabilties"; did you mean "capabilities"/],
    [{ pooling: 'max' }, /"pooling"/],
    [{ kind: 'rerankers' }, /says rerankers, but it lies among the embedders/],
    [{ variants: { full: '../../../etc/passwd' } }, /not a path below/],
    [{ variants: { full: '/etc/passwd' } }, /not a path below/],
    [{ variants: { full: 'gone.onnx' } }, /is not there/],
    [[], /JSON object/],
  ];
  test.each(wrong)('%j is refused', (manifest, reason) => {
    using directory = new TemporaryDirectory();
    expect(reasons(withManifest(directory, JSON.stringify(manifest))).tiny).toMatch(reason);
  });
});

describe('what is refused does not stand in the way of the rest', () => {
  test('a damaged file, a missing tokenizer, an empty directory, a forbidden name', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, {
      'embedders/good': embedder,
      'embedders/cut': embedder,
      'embedders/mute': embedder,
      'embedders/bad name': embedder,
      'chunkers/fixed': embedder,
    });
    truncateSync(join(path, 'embedders/cut/onnx/model.onnx'), 30_000);
    renameSync(join(path, 'embedders/mute/tokenizer.json'), join(path, 'embedders/mute/else.json'));
    mkdirSync(join(path, 'generators/empty'), { recursive: true });
    expect(registry(path).models.map(({ name }) => name)).toEqual(['good']);
    expect(reasons(path)).toEqual({
      cut: expect.stringContaining('runs past its end'),
      mute: expect.stringContaining('no tokenizer.json'),
      'bad name': expect.stringContaining('letters, digits'),
      fixed: expect.stringContaining('built-in'),
      empty: expect.stringContaining('no weights'),
    });
  });
});

describe('a second look', () => {
  test('finds what came, what changed and what went, and reads nothing else again', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, { 'embedders/stays': embedder, 'embedders/goes': embedder });
    const found = registry(path);
    const stays = found.find('embedders', 'stays');
    renameSync(join(path, 'embedders/goes'), join(path, 'embedders/comes'));
    expect(found.models.map(({ name }) => name)).toEqual(['goes', 'stays']);
    found.rescan();
    expect(found.models.map(({ name }) => name)).toEqual(['comes', 'stays']);
    expect(found.find('embedders', 'stays')).toBe(stays);
    writeFileSync(join(path, 'embedders/stays/onnx/model.onnx'), '<html>');
    found.rescan();
    expect(found.models.map(({ name }) => name)).toEqual(['comes']);
    expect(found.refused.map(({ name }) => name)).toEqual(['stays']);
  });
});

describe('a model that a request names', () => {
  test('is found by kind and name, or refused with the reason', () => {
    using directory = new TemporaryDirectory();
    const path = installed(directory, { 'embedders/tiny-bert': embedder, 'embedders/broken': embedder });
    writeFileSync(join(path, 'embedders/broken/onnx/model.onnx'), '<html>');
    const found = registry(path);
    expect(requireInstalled(found, 'embedders', 'tiny-bert').name).toBe('tiny-bert');
    const refused = (kind: 'embedders' | 'rerankers', name: string) => () => requireInstalled(found, kind, name);
    expect(refused('embedders', 'tiny-bart')).toThrow(/no model named "tiny-bart".*Did you mean "tiny-bert"\?/);
    expect(refused('embedders', 'broken')).toThrow(
      expect.objectContaining({
        code: 'model_load_failed',
        message: expect.stringContaining('cannot be served: model.onnx'),
      }),
    );
    expect(refused('rerankers', 'tiny-bert')).toThrow(
      expect.objectContaining({
        code: 'model_not_supported',
        message: expect.stringContaining('is among the embedders, not the rerankers'),
      }),
    );
  });
});
