import { describe, expect, test } from 'bun:test';
import { checkDocumentKey, documentKeyBytesMax } from '../../../src/protocol/document-key.ts';
import { checkIndexName, checkTableName, nameCharsMax } from '../../../src/protocol/names.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

function codeOf(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
  return 'accepted';
}

describe('names of tables and indexes', () => {
  const good = [
    'a',
    'books',
    'Books-2_v1.0',
    '日本語',
    'été',
    '9lives',
    'a'.repeat(nameCharsMax),
    '𝒳'.repeat(nameCharsMax),
    'नमस्ते',
  ];
  test.each(good)('%s is one', (name) => {
    expect(checkTableName(name)).toBe(name);
    expect(checkIndexName(name)).toBe(name);
  });

  const bad: readonly (readonly [why: string, name: string])[] = [
    ['empty', ''],
    ['too long', 'a'.repeat(nameCharsMax + 1)],
    ['a path', '../x'],
    ['a separator', 'a/b'],
    ['a backslash', 'a\\b'],
    ['dots', '..'],
    ['two dots inside', 'a..b'],
    ['hidden', '.a'],
    ['reserved', '_a'],
    ['an option', '-a'],
    ['a space', 'a b'],
    ['NUL', 'a\0'],
    ['a control character', 'a\n'],
    ['a percent sign', 'a%2e'],
    ['not in normal form', 'e\u0301'],
    ['a full-width dot', 'a\uff0eb'],
    ['a fraction slash', 'a\u2044b'],
    ['a zero-width joiner', 'a\u200db'],
    ['right-to-left override', 'a\u202eb'],
    ['a lone surrogate', 'a\ud800'],
    ['a colon', 'a:b'],
  ];
  test.each(bad)('%s is refused', (_why, name) => {
    expect(codeOf(() => checkTableName(name))).toBe('invalid_name');
    expect(codeOf(() => checkIndexName(name))).toBe('invalid_name');
  });

  test('a long name is not repeated whole in the message', () => {
    expect(() => checkTableName('/'.repeat(10_000))).toThrow(/^.{1,200}$/);
  });
});

describe('document keys', () => {
  const good = [
    'a',
    'a/b:c#d',
    ' ',
    '__proto__',
    '../x',
    'é',
    '日'.repeat(341),
    'x'.repeat(documentKeyBytesMax),
    '\u0080',
  ];
  test.each(good)('%j is one', (key) => {
    expect(checkDocumentKey(key)).toBe(key);
  });

  const bad = [
    '',
    'x'.repeat(documentKeyBytesMax + 1),
    '日'.repeat(342),
    'a\0',
    'a\u001f',
    'a\u007f',
    'a\ud800',
    '\udc00a',
  ];
  test.each(bad)('%j is refused', (key) => {
    expect(codeOf(() => checkDocumentKey(key))).toBe('invalid_key');
  });
});
