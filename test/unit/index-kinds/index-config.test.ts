import { describe, expect, test } from 'bun:test';
import { readIndexConfig } from '../../../src/index-kinds/configuration/index-config.ts';
import type { IndexConfig } from '../../../src/protocol/database/tables.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

const common = { name: 'v', description: '', version: 0, enrichments: [], mem_only: false };

/** The refusal of a configuration. */
function refusal(config: IndexConfig): { code: string; message: string } {
  try {
    readIndexConfig('v', config);
  } catch (error) {
    if (error instanceof ServiceError) return { code: error.code, message: error.message };
    throw error;
  }
  throw new Error(`${JSON.stringify(config)} was accepted`);
}

describe('configurations of embeddings indexes', () => {
  test('dense: everything that is left out has its default; the type is inferred', () => {
    const dense = { ...common, type: 'embeddings', external: true, sparse: false, dimension: 3 };
    const config = readIndexConfig('v', { external: true, dimension: 3 });
    expect(config as object).toEqual({ ...dense, distance_metric: 'l2_squared' });
    const cosine = { type: 'embeddings', external: true, dimension: 3, distance_metric: 'cosine', mem_only: true };
    expect(readIndexConfig('v', cosine) as object).toEqual({ ...dense, distance_metric: 'cosine', mem_only: true });
  });

  test('sparse: the dimension does not count', () => {
    const sparse = { ...common, type: 'embeddings', external: true, sparse: true };
    const config = readIndexConfig('v', { type: 'embeddings', external: true, sparse: true, dimension: 30_000 });
    expect(config as object).toEqual({ ...sparse, top_k: 10, min_weight: 0, chunk_size: 1024 });
    const tuned = { top_k: 5, min_weight: 0.25, chunk_size: 64 };
    expect(readIndexConfig('v', { external: true, sparse: true, ...tuned }) as object).toEqual({ ...sparse, ...tuned });
  });

  const dense = { type: 'embeddings', external: true, dimension: 3 };
  const sparse = { type: 'embeddings', external: true, sparse: true };
  const managed = { type: 'embeddings', field: 'text', embedder: { provider: 'ollama', model: 'bge-m3' } };
  test.each<[object, string]>([
    [{ type: 'embeddings', external: true }, '"dimension" is missing'],
    [{ ...dense, dimension: 0 }, '"dimension" must be an integer from 1 to 16384'],
    [{ ...dense, dimension: 16_385 }, '"dimension" must be an integer from 1 to 16384'],
    [{ ...dense, dimension: 2.5 }, '"dimension" must be an integer from 1 to 16384'],
    [{ ...dense, distance_metric: 'l2' }, '"distance_metric" must be one of l2_squared, cosine, inner_product'],
    [{ ...dense, field: 'text' }, 'leave "field" out'],
    [{ ...dense, template: '{{text}}' }, 'leave "template" out'],
    [{ ...dense, embedder: { provider: 'ollama' } }, 'leave "embedder" out'],
    [{ ...dense, chunker: {} }, 'leave "chunker" out'],
    [{ ...dense, top_k: 5 }, '"top_k" belongs to sparse indexes'],
    [{ ...dense, summarizer: {} }, 'takes no "summarizer"'],
    [{ ...managed, summarizer: {} }, 'takes no "summarizer"'],
    [{ ...dense, dimensions: 3 }, 'Did you mean "dimension"?'],
    [{ type: 'embedding' }, 'there is no index type "embedding"; did you mean "embeddings"?'],
    [{ type: '__proto__' }, 'there is no index type "__proto__"'],
    [{ type: 'constructor' }, 'there is no index type "constructor"'],
    [{ ...sparse, distance_metric: 'cosine' }, 'a sparse index scores by the dot product'],
    [{ ...sparse, top_k: 0 }, '"top_k" must be an integer from 1 to 10000'],
    [{ ...sparse, min_weight: -1 }, '"min_weight" must be a number of at least 0'],
    [{ ...sparse, chunk_size: 63 }, '"chunk_size" must be an integer from 64 to 65536'],
    [{ type: 'embeddings', sparse: true }, 'set "external" to true'],
    [{ type: 'embeddings', dimension: 3 }, 'give "field" or "template"'],
    [{ type: 'embeddings', field: 'text' }, '"embedder" is missing'],
    [{ ...managed, embedder: {} }, '"embedder.provider" is missing'],
    [{ ...managed, dimension: -1 }, '"dimension" must be an integer from 1 to 16384'],
  ])('%j is refused: %s', (config, message) => {
    expect(refusal(config)).toEqual({ code: 'invalid_request', message: expect.stringContaining(message) });
  });

  test('none may be called what queries call their search for text', () => {
    expect(() => readIndexConfig('full_text', { external: true, dimension: 3 })).toThrow('give the index another name');
    expect(readIndexConfig('full_text', { type: 'full_text' }).name).toBe('full_text');
  });

  test('a managed one takes its dimension from its embedder unless told', () => {
    const { embedder, field } = managed;
    expect(readIndexConfig('v', managed) as object).toMatchObject({ external: false, embedder, field: `$.${field}` });
    expect(readIndexConfig('v', { ...managed, dimension: 3 }) as object).toMatchObject({ dimension: 3 });
  });

  test('a provider that does not exist is refused with a code of its own', () => {
    const { code, message } = refusal({ ...managed, embedder: { provider: 'olama' } });
    expect(code).toBe('unknown_provider');
    expect(message).toContain('Did you mean "ollama"?');
  });
});
