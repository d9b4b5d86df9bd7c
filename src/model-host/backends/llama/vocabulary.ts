import { ServiceError } from '../../../protocol/service-error.ts';
import type { PromptPiece } from '../../operations/generate.ts';
import type { TokenizerOfModel } from '../../token-handlers.ts';
import type { NativeModel } from './binding.ts';

/** Numbers of llama.cpp: kinds of vocabularies, and bits of what a token is. */
const sentencePiece = 1;
const bytePairs = 2;
const wordPieces = 3;
const unigrams = 4;
const unknownBit = 1;
const controlBit = 8;
const userDefinedBit = 16;
const byteBit = 32;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const nothing = new Uint8Array(0);

/** The tokens of one model: texts to tokens, and each token to its exact bytes. */
export class Vocabulary implements TokenizerOfModel {
  readonly size: number;
  /** Tokens that end an output. */
  readonly ends: ReadonlySet<number>;
  /** Control tokens: not part of the text of an output unless a request names them. */
  readonly controlTokens: readonly number[];
  /** Texts that the tokenizer reads as one special token. */
  readonly specialTexts: readonly string[];
  /** Text of the token that begins a prompt, where the model wants one. */
  readonly beginText: string | undefined;
  readonly endText: string | undefined;
  /** Texts of the tokens for filling a gap, where the model has them. */
  readonly infillTexts: { readonly prefix: string; readonly suffix: string; readonly middle: string } | undefined;
  readonly #model: NativeModel;
  readonly #kind: number;
  readonly #bytes: (Uint8Array | undefined)[] = [];

  constructor(model: NativeModel, size: number) {
    this.#model = model;
    this.size = size;
    this.#kind = model.getVocabularyType();
    const tokens = Array.from({ length: size }, (_, token) => token);
    this.ends = new Set(tokens.filter((token) => model.isEogToken(token)));
    this.controlTokens = tokens.filter((token) => this.isControl(token));
    this.specialTexts = this.controlTokens.map((token) => model.getTokenString(token)).filter((text) => text !== '');
    this.beginText = model.shouldPrependBosToken() ? this.#textOrNone(model.tokenBos()) : undefined;
    this.endText = this.#textOrNone(model.tokenEos());
    const [prefix, suffix, middle] = [model.prefixToken(), model.suffixToken(), model.middleToken()].map((token) =>
      this.#textOrNone(token),
    );
    const fills = prefix !== undefined && suffix !== undefined && middle !== undefined;
    this.infillTexts = fills ? { prefix, suffix, middle } : undefined;
  }

  /** Tokens of a prompt, with the one that begins a text where the model wants it and the prompt does not have it. */
  tokenize(prompt: readonly PromptPiece[]): number[] {
    const tokens: number[] = [];
    for (const piece of prompt) for (const token of this.#tokensOf(piece)) tokens.push(token);
    const begin = this.#model.tokenBos();
    if (this.beginText !== undefined && tokens[0] !== begin) tokens.unshift(begin);
    return tokens;
  }

  /** How many tokens of a prompt are those of the piece, and the text of it. */
  shown(piece: PromptPiece): { readonly tokens: number; readonly text: string } {
    const tokens = [...this.#tokensOf(piece)];
    if ('text' in piece) return { tokens: tokens.length, text: piece.text };
    const bytes = tokens.flatMap((token) => [...this.spelledBytes(token)]);
    return { tokens: tokens.length, text: decoder.decode(Uint8Array.from(bytes)) };
  }

  encode(text: string): readonly number[] {
    return [...this.plainTokens(text)];
  }

  #tokensOf(piece: PromptPiece): Iterable<number> {
    if ('text' in piece) return piece.text === '' ? [] : this.#model.tokenize(piece.text, piece.markup);
    const foreign = piece.tokens.find((token) => this.#known(token) === undefined);
    if (foreign === undefined) return piece.tokens;
    throw new ServiceError(
      'invalid_request',
      `the prompt has the token ${foreign}; this model has ${this.size} tokens`,
    );
  }

  plainTokens(text: string): Uint32Array {
    return this.#model.tokenize(text, false);
  }

  markupTokens(text: string): Uint32Array {
    return this.#model.tokenize(text, true);
  }

  /** An input with the tokens that the model wants before and behind it, where it does not have them. */
  framed(tokens: readonly number[]): readonly number[] {
    const [begin, end] = this.#frame();
    const before = begin === undefined || tokens[0] === begin ? [] : [begin];
    const behind = end === undefined || (tokens.length > 0 && tokens.at(-1) === end) ? [] : [end];
    return [...before, ...tokens, ...behind];
  }

  /** Two inputs as one, each with its end. */
  framedPair(first: readonly number[], second: readonly number[]): readonly number[] {
    const separator = this.#known(this.#model.sepToken());
    const end = this.#known(this.#model.tokenEos());
    const begin = this.#known(this.#model.tokenBos());
    const between = this.#kind === wordPieces ? [separator] : [end, separator];
    const behind = this.#kind === wordPieces ? separator : end;
    return [begin, ...first, ...between, ...second, behind].filter((token) => token !== undefined);
  }

  /** The text of tokens, without control tokens. */
  decode(tokens: readonly number[]): string {
    return this.#model.detokenize(Uint32Array.from(tokens), false);
  }

  /** The text that the token adds to an output; empty for control tokens. */
  bytesOf(token: number): Uint8Array {
    const known = this.#bytes[token];
    if (known !== undefined) return known;
    const bytes = this.isControl(token) ? nothing : this.#spell(token);
    this.#bytes[token] = bytes;
    return bytes;
  }

  /** Its bytes where it is shown: a control token as its text. */
  spelledBytes(token: number): Uint8Array {
    return this.isControl(token) ? encoder.encode(this.textOf(token)) : this.bytesOf(token);
  }

  /** The text that stands for the token, control tokens included. */
  textOf(token: number): string {
    return this.#model.getTokenString(token);
  }

  isControl(token: number): boolean {
    return (this.#model.getTokenAttributes(token) & (controlBit | unknownBit)) !== 0;
  }

  /** As llama.cpp frames what it tokenizes itself. */
  #frame(): readonly [begin: number | undefined, end: number | undefined] {
    const model = this.#model;
    if (this.#kind === wordPieces) return [this.#known(model.tokenBos()), this.#known(model.sepToken())];
    const wantsEnd = this.#kind === unigrams || model.shouldAppendEosToken();
    const begin = model.shouldPrependBosToken() && this.#kind !== unigrams ? this.#known(model.tokenBos()) : undefined;
    return [begin, wantsEnd ? this.#known(model.tokenEos()) : undefined];
  }

  /** Undefined for a token that the model does not have, which has the number -1. */
  #known(token: number): number | undefined {
    return token >= 0 && token < this.size ? token : undefined;
  }

  #textOrNone(token: number): string | undefined {
    return this.#known(token) === undefined ? undefined : this.#model.getTokenString(token);
  }

  #spell(token: number): Uint8Array {
    const attributes = this.#model.getTokenAttributes(token);
    const text = this.#model.getTokenString(token);
    if ((attributes & userDefinedBit) !== 0) return encoder.encode(text);
    if ((attributes & byteBit) !== 0 && /^<0x[0-9A-Fa-f]{2}>$/.test(text)) {
      return Uint8Array.of(Number.parseInt(text.slice(3, 5), 16));
    }
    if (this.#kind === bytePairs) return spellBytePairs(text);
    if (this.#kind === sentencePiece || this.#kind === unigrams) return encoder.encode(text.replaceAll('\u2581', ' '));
    return encoder.encode(this.#model.detokenize(Uint32Array.of(token), false));
  }
}

/** Byte-level BPE writes each byte as a printable character: itself, or one above 255 where it is not printable. */
const byteOfCharacter = new Map<string, number>();
for (let byte = 0, moved = 256; byte < 256; byte += 1) {
  const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  byteOfCharacter.set(String.fromCharCode(printable ? byte : moved), byte);
  if (!printable) moved += 1;
}

function spellBytePairs(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of text) {
    const byte = byteOfCharacter.get(character);
    if (byte === undefined) bytes.push(...encoder.encode(character));
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
