import { describe, expect, test } from 'bun:test';
import { limits } from '../../../src/config/limits.ts';
import {
  chunkerOf,
  readArtifactConfig,
  shownArtifact,
} from '../../../src/index-kinds/configuration/artifact-config.ts';

const chunk = { kind: 'chunk', field: 'body', chunk_size: 100 };
const asset = { kind: 'asset', field: 'body' };
const embedder = { type: 'embedder', config: { provider: 'mock', model: 'words' } };

describe('an enrichment', () => {
  test('takes a bare path from the top of the document, and empty texts and zeros for what is not given', () => {
    const given = { ...asset, name: '', template: '', source_artifact_name: '', expected_dims: 0, chunk_size: 0 };
    expect(readArtifactConfig('copy', { ...given, name: 'copy' })).toEqual({
      name: 'copy',
      kind: 'asset',
      field: '$.body',
      full_text_index: false,
    });
  });

  test('is shown with every member of the interface but its producer, and can be put back as it is shown', () => {
    const config = readArtifactConfig('steps', { ...chunk, chunk_overlap: 10, execution: { batch_items: 4 } });
    const shown = shownArtifact(config);
    expect(shown).toEqual({
      name: 'steps',
      kind: 'chunk',
      field: '$.body',
      template: '',
      source_artifact_name: '',
      expected_dims: 0,
      vector_space: '',
      chunk_size: 100,
      chunk_overlap: 10,
      chunker_json: '',
      full_text_index: false,
      content_type: '',
      execution: { batch_items: 4, batch_bytes: limits.enrichmentBatchBytes },
    });
    expect(readArtifactConfig('steps', shown)).toEqual(config);
    const usual = readArtifactConfig('steps', chunk);
    expect(usual).not.toHaveProperty('execution');
    expect(readArtifactConfig('steps', shownArtifact(usual))).toEqual(usual);
    const made = readArtifactConfig('made', { ...asset, producer_json: JSON.stringify({ type: 'copy' }) });
    expect(shownArtifact(made)).not.toHaveProperty('producer_json');
    expect(shownArtifact(made).execution?.batch_items).toBe(limits.producerBatchItems);
  });

  test('of kind chunk is cut by its chunker where it has one and windows, and the text is whole unless it says', () => {
    const chunker_json = '{"provider":"service","model":"fixed","text":{"target_tokens":200,"overlap_tokens":20}}';
    const chunker = chunkerOf(readArtifactConfig('steps', { ...chunk, chunker_json }));
    expect(chunker).toMatchObject({
      by: 'tokens',
      targetTokens: 200,
      overlapTokens: 20,
      chunksMax: limits.documentChunksMax,
    });
    const windows = chunkerOf(readArtifactConfig('steps', { ...chunk, chunk_overlap: 20 }));
    expect(windows).toMatchObject({ by: 'characters', size: 100, overlap: 20 });
  });

  const strangers: [member: string, on: object, value: unknown][] = [
    ['expected_dims', chunk, 3],
    ['vector_space', asset, 'meaning'],
    ['chunk_size', asset, 3],
    ['chunk_overlap', asset, 3],
    ['chunker_json', asset, '{}'],
    ['full_text_index', { kind: 'embedding', field: 'body', producer_json: embedder }, true],
    ['content_type', chunk, 'text/plain'],
    ['producer_json', chunk, embedder],
  ];
  test.each(strangers)('has no `%s` where that belongs to other kinds', (member, on, value) => {
    expect(() => readArtifactConfig('made', { ...on, [member]: value })).toThrow(`"${member}" belongs to enrichments`);
  });

  test.each([
    ['both a field and an artifact', { ...asset, source_artifact_name: 'other' }],
    ['both a template and an artifact', { kind: 'asset', template: '{{a}}', source_artifact_name: 'other' }],
    ['a content type that is none', { ...asset, content_type: 'text' }],
    ['a template that is too long', { kind: 'asset', template: 'x'.repeat(65_537) }],
    ['a chunker that is a list', { kind: 'chunk', field: 'body', chunker_json: '[]' }],
    ['a path without names', { kind: 'asset', field: 'a..b' }],
  ])('is refused with %s', (_, given) => {
    expect(() => readArtifactConfig('made', given)).toThrow();
  });
});
