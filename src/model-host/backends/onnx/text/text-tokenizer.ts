import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { must } from '../../../../lib/assert.ts';
import { readFolderJson } from '../../../../models/model-folder.ts';

/** Ids that a model reads, with the segment of each. */
export interface Encoded {
  readonly ids: Int32Array;
  readonly types: Int32Array;
  /** How many of the first ids the others look at; all of them where it is missing. */
  readonly attended?: number;
  /** Runs of ids that get a vector each, the end exclusive; one for all of them where they are missing. */
  readonly spans?: readonly (readonly [from: number, to: number])[];
}

/** The text that a template puts around texts, and the segment of what is in it. */
interface Frame {
  readonly marks: readonly (readonly number[])[];
  readonly markTypes: readonly (readonly number[])[];
  readonly textTypes: readonly number[];
}

interface TokenizerFile {
  readonly model: { readonly type?: string; readonly vocab?: unknown; readonly unk_id?: number };
  readonly added_tokens?: readonly AddedToken[];
}

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

/**
 * The tokenizer of a model's folder. What people write never becomes a special token: those of the template are added
 * as ids, and the same characters in a text are plain characters.
 */
export class TextTokenizer {
  readonly specialTexts: readonly string[];
  readonly vocabularySize: number;
  readonly padId: number;
  readonly #tokenizer: Tokenizer;
  readonly #single: Frame;
  readonly #pair: Frame;

  /** Throws where `tokenizer.json` is missing or of an unknown kind. */
  constructor(directory: string) {
    const file = JSON.parse(readFileSync(join(directory, 'tokenizer.json'), 'utf8')) as TokenizerFile;
    const config = existsSync(join(directory, 'tokenizer_config.json'))
      ? (readFolderJson(directory, 'tokenizer_config.json') ?? {})
      : {};
    const special = (file.added_tokens ?? []).filter((token) => token.special);
    const tokenizer = new Tokenizer(file, config);
    this.#single = frameOf(tokenizer, ['a']);
    this.#pair = frameOf(tokenizer, ['a', 'b']);
    this.specialTexts = special.map(({ content }) => content);
    this.padId = tokenizer.token_to_id(typeof config.pad_token === 'string' ? config.pad_token : '[PAD]') ?? 0;
    this.vocabularySize = 1 + [...tokenizer.get_vocab(true).values()].reduce((most, id) => Math.max(most, id), 0);
    this.#tokenizer = plainTokenizer(file, config, special);
  }

  /** Ids of the characters alone. */
  plain(text: string): readonly number[] {
    return text === '' ? [] : this.#tokenizer.encode(text, { add_special_tokens: false }).ids;
  }

  /** Ids that the template adds to one text, or to a pair. */
  marks(texts: 1 | 2): number {
    return (texts === 1 ? this.#single : this.#pair).marks.reduce((sum, ids) => sum + ids.length, 0);
  }

  /** Ids that the template puts in front of one text. */
  get marksBefore(): number {
    return this.#single.marks[0]?.length ?? 0;
  }

  /** Plain ids of one text, or of a pair, inside the template. */
  framed(...texts: readonly (readonly number[])[]): Encoded {
    const { marks, markTypes, textTypes } = texts.length === 1 ? this.#single : this.#pair;
    const length = texts.reduce((sum, ids) => sum + ids.length, 0) + this.marks(texts.length === 1 ? 1 : 2);
    const ids = new Int32Array(length);
    const types = new Int32Array(length);
    let at = 0;
    for (const [place, mark] of marks.entries()) {
      ids.set(mark, at);
      types.set(must(markTypes[place], 'a segment for every mark'), at);
      at += mark.length;
      const text = texts[place] ?? [];
      ids.set(text, at);
      types.fill(textTypes[place] ?? 0, at, at + text.length);
      at += text.length;
    }
    return { ids, types };
  }

  idOf(token: string): number | undefined {
    return this.#tokenizer.token_to_id(token);
  }

  /** The text that stands for an id. */
  textOf(id: number): string {
    return this.#tokenizer.id_to_token(id) ?? '';
  }

  /** The text of ids, without special tokens. */
  decode(ids: readonly number[]): string {
    const kept = ids.filter((id) => !this.specialTexts.includes(this.#tokenizer.id_to_token(id) ?? ''));
    return kept.length === 0 ? '' : this.#tokenizer.decode([...kept], { skip_special_tokens: true });
  }
}

/** The file's tokenizer without special tokens to look for in texts; their ids are still known to its decoder. */
function plainTokenizer(file: TokenizerFile, config: object, special: readonly AddedToken[]): Tokenizer {
  const texts = new Set(special.map(({ content }) => content));
  const { vocab } = file.model;
  // A unigram model would find its special tokens as ordinary pieces.
  const model = Array.isArray(vocab)
    ? { ...file.model, vocab: vocab.map((piece) => (texts.has(String(piece?.[0])) ? [unreachable, 0] : piece)) }
    : file.model;
  const added_tokens = (file.added_tokens ?? []).filter((token) => !token.special);
  const tokenizer = new Tokenizer({ ...file, model, added_tokens }, config);
  const known = must(tokenizer.model, 'a tokenizer has a model');
  for (const { id, content } of special) {
    known.tokens_to_ids.set(content, id);
    known.vocab[id] = content;
  }
  return tokenizer;
}

/** No text that was normalised has it. */
const unreachable = '\u0000special';

/** Reads from examples what a tokenizer puts before, between and behind texts. */
function frameOf(tokenizer: Tokenizer, texts: readonly string[]): Frame {
  const [first = '', second] = texts;
  const pair = second === undefined ? {} : { text_pair: second };
  const full = tokenizer.encode(first, { ...pair, return_token_type_ids: true });
  const types = full.token_type_ids ?? full.ids.map(() => 0);
  const marks: number[][] = [];
  const markTypes: number[][] = [];
  const textTypes: number[] = [];
  let from = 0;
  for (const text of texts) {
    const plain = tokenizer.encode(text, { add_special_tokens: false }).ids;
    const at = indexOfRun(full.ids, plain, from);
    marks.push(full.ids.slice(from, at));
    markTypes.push(types.slice(from, at));
    textTypes.push(types[at] ?? 0);
    from = at + plain.length;
  }
  return { marks: [...marks, full.ids.slice(from)], markTypes: [...markTypes, types.slice(from)], textTypes };
}

function indexOfRun(ids: readonly number[], run: readonly number[], from: number): number {
  for (let at = from; at + run.length <= ids.length; at += 1) {
    if (run.every((id, offset) => ids[at + offset] === id)) return at;
  }
  throw new Error('its tokenizer changes what its template surrounds');
}
