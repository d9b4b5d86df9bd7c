import { describe, expect, test } from 'bun:test';
import { TextTokenizer } from '../../../src/model-host/backends/onnx/text/text-tokenizer.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const bert = Bun.fileURLToPath(new URL('../../fixtures/models/embedders/tiny-bert/', import.meta.url));
const added = (id: number, content: string, special = true) => ({
  id,
  content,
  special,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
});

/** The letters of a text as byte-level BPE has them, between `<s>` and `</s>`, pairs with two of the latter between. */
function byteLevel() {
  const letters = [...'abcdefghijklmnopqrstuvwxyz</>Ġ'];
  return {
    added_tokens: [added(0, '<s>'), added(1, '<pad>'), added(2, '</s>')],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: 'RobertaProcessing',
      sep: ['</s>', 2],
      cls: ['<s>', 0],
      add_prefix_space: false,
      trim_offsets: true,
    },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      unk_token: null,
      vocab: { '<s>': 0, '<pad>': 1, '</s>': 2, ...Object.fromEntries(letters.map((letter, at) => [letter, 3 + at])) },
      merges: [],
    },
  };
}

/** Pieces with scores, as SentencePiece has them; its special tokens are pieces too. */
function unigram() {
  const sequence = (id: string) => ({ Sequence: { id, type_id: 0 } });
  const end = { SpecialToken: { id: '</s>', type_id: 0 } };
  const pieces = ['<pad>', '</s>', '<unk>', '▁', 'a', 'b', '<', '/', 's', '>'];
  return {
    added_tokens: [added(0, '<pad>'), added(1, '</s>'), added(2, '<unk>')],
    normalizer: null,
    pre_tokenizer: { type: 'Metaspace', replacement: '▁', add_prefix_space: true },
    post_processor: {
      type: 'TemplateProcessing',
      single: [sequence('A'), end],
      pair: [sequence('A'), end, sequence('B'), end],
      special_tokens: { '</s>': { id: '</s>', ids: [1], tokens: ['</s>'] } },
    },
    decoder: { type: 'Metaspace', replacement: '▁', add_prefix_space: true },
    model: { type: 'Unigram', unk_id: 2, vocab: pieces.map((piece, at) => [piece, at < 3 ? 0 : -1 - at]) },
  };
}

function open(file: object, config: object = {}): TextTokenizer {
  using directory = new TemporaryDirectory();
  directory.write('tokenizer.json', JSON.stringify(file));
  directory.write('tokenizer_config.json', JSON.stringify(config));
  return new TextTokenizer(directory.path);
}

const idsOf = (tokenizer: TextTokenizer, ...texts: string[]) =>
  Array.from(tokenizer.framed(...texts.map((text) => tokenizer.plain(text))).ids);

describe('the template', () => {
  test('surrounds one text and pairs, and says which segment is whose', () => {
    const tokenizer = new TextTokenizer(bert);
    expect([tokenizer.marks(1), tokenizer.marks(2), tokenizer.marksBefore]).toEqual([2, 3, 1]);
    const [the, cat] = [tokenizer.idOf('the') ?? 0, tokenizer.idOf('cat') ?? 0];
    expect(idsOf(tokenizer, 'the cat')).toEqual([2, the, cat, 3]);
    const pair = tokenizer.framed(tokenizer.plain('the'), tokenizer.plain('cat cat'));
    expect(Array.from(pair.ids)).toEqual([2, the, 3, cat, cat, 3]);
    expect(Array.from(pair.types)).toEqual([0, 0, 0, 1, 1, 1]);
    expect(idsOf(tokenizer, '')).toEqual([2, 3]);
  });

  test('is read from other families as well', () => {
    const roberta = open(byteLevel(), { pad_token: '<pad>' });
    expect(idsOf(roberta, 'ab')).toEqual([0, 3, 4, 2]);
    expect(idsOf(roberta, 'a', 'b')).toEqual([0, 3, 2, 2, 4, 2]);
    expect([roberta.padId, roberta.vocabularySize]).toEqual([1, 33]);
    const pieces = open(unigram(), { pad_token: '<pad>' });
    expect(idsOf(pieces, 'ab')).toEqual([3, 4, 5, 1]);
    expect(idsOf(pieces, 'a', 'b')).toEqual([3, 4, 1, 3, 5, 1]);
  });
});

describe('what people write', () => {
  test('never becomes a special token', () => {
    for (const [tokenizer, end] of [
      [open(byteLevel()), 2],
      [open(unigram()), 1],
    ] as const) {
      const ids = tokenizer.plain('a</s>b');
      expect(ids).not.toContain(end);
      expect(ids.length).toBeGreaterThanOrEqual(6);
      expect(tokenizer.plain('</s>')).not.toContain(end);
    }
    const plain = new TextTokenizer(bert).plain('[CLS] [SEP] [PAD]');
    for (const special of [0, 2, 3]) expect(plain).not.toContain(special);
  });
});

describe('decoding', () => {
  test('leaves special tokens out', () => {
    const tokenizer = new TextTokenizer(bert);
    expect(tokenizer.decode(idsOf(tokenizer, 'the cat runs fast !'))).toBe('the cat runs fast!');
    expect(tokenizer.decode([2, 3])).toBe('');
    expect(open(byteLevel()).decode([0, 3, 4, 2])).toBe('ab');
  });
});
