import { describe, expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import { type SourceTemplates, sourceHash, sourceOf } from '../../../src/enrichment/derive-source.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

const body = (document: object) => new TextEncoder().encode(JSON.stringify(document));
const { signal } = new AbortController();
const call = { caller: serverCaller('r', signal), signal };
/** As it is read with templates that are rendered by this function. */
const sourceBy = (document: object, source: { field?: string; template?: string }, render: SourceTemplates['render']) =>
  sourceOf(body(document), { field: source.field, template: source.template }, { render, resolve: undefined }, call);
const byField = (document: object, field: string) => sourceBy(document, { field }, () => []);

describe('what of a document is embedded', () => {
  const document = { title: 'Leek soup', author: { name: 'Ada' }, tags: ['a'], n: 7, none: null, empty: '' };

  test.each([
    ['$.title', 'Leek soup'],
    ['$.author.name', 'Ada'],
  ])('is the text at %s', (field, text) => {
    expect(byField(document, field)).toEqual({ kind: 'text', text });
  });

  test.each(['$.nowhere', '$.author.nowhere', '$.none', '$.empty', '$.title.deeper', '$.__proto__', '$.constructor'])(
    'is nothing at %s',
    (field) => {
      expect(byField(document, field)).toEqual({ kind: 'none' });
    },
  );

  test.each(['$.n', '$.tags', '$.author'])('is a fault of the document at %s, which is no string', (field) => {
    expect(byField(document, field)).toMatchObject({ kind: 'invalid', error: { code: 'invalid_request' } });
  });

  test('is what a template makes of it, and nothing where that is blank', () => {
    const render = (template: string) => (template === 'blank' ? [' \n '] : ['Leek', ' soup ']);
    const by = (template: string) => sourceBy(document, { field: '$.n', template }, render);
    expect(by('t')).toEqual({ kind: 'text', text: 'Leek soup' });
    expect(by('blank')).toEqual({ kind: 'none' });
  });

  test('is a fault of the document where its rendering is refused', () => {
    const refuse = () => {
      throw new ServiceError('limit_exceeded', 'too long');
    };
    const source = sourceBy(document, { template: 't' }, refuse);
    expect(source).toMatchObject({ kind: 'invalid', error: { code: 'limit_exceeded' } });
  });
});

test('a hash tells texts and what makes their vectors apart', () => {
  const hashes = ['ax', 'ay', 'bx', 'ax'].map(([made = '', text = '']) => sourceHash(made, text));
  const [first, ...others] = hashes.map((hash) => Buffer.from(hash).toString('hex'));
  expect(first).toHaveLength(32);
  expect(others.map((each) => each === first)).toEqual([false, false, true]);
});
