import { ServiceError } from '../../protocol/service-error.ts';

/** A word as read: escapes resolved, unescaped wildcards counted. */
export interface QueryWord {
  text: string;
  /** Unescaped `*` and `?`; they are part of `text`. */
  wildcards: number;
  /** Whether the only wildcard is a `*` at the end. */
  isPrefix: boolean;
  /** The word with a backslash before `*`, `?` and backslashes that were escaped. */
  pattern: string;
}

/** A bound of a range. */
export interface QuotedOrBare {
  text: string;
  quoted: boolean;
}

const quote = 0x22;
const openingBracket = 0x28;
const closingBracket = 0x29;
type QueryOperator = 'AND' | 'OR' | 'NOT';
/** By their spellings. */
const operators: readonly (readonly [spelling: string, operator: QueryOperator])[] = [
  ['AND', 'AND'],
  ['&&', 'AND'],
  ['OR', 'OR'],
  ['||', 'OR'],
  ['NOT', 'NOT'],
];

/** A cursor over a query string that knows characters, words and escapes, but no grammar. */
export class QueryStringText {
  position = 0;
  readonly #text: string;
  readonly #where: string;

  constructor(text: string, where: string) {
    this.#text = text;
    this.#where = where;
  }

  get atEnd(): boolean {
    return this.position >= this.#text.length;
  }

  /** The character `ahead` of the cursor; empty past the end. */
  peek(ahead = 0): string {
    return this.#text[this.position + ahead] ?? '';
  }

  skipSpace(): void {
    while (!this.atEnd && isSpace(this.#text.charCodeAt(this.position))) this.position += 1;
  }

  /** Moves past `text` when the cursor stands on it. */
  take(text: string): boolean {
    if (!this.#text.startsWith(text, this.position)) return false;
    this.position += text.length;
    return true;
  }

  /** Whether the character `ahead` ends a word. */
  endsWord(ahead = 0): boolean {
    const index = this.position + ahead;
    if (index >= this.#text.length) return true;
    const code = this.#text.charCodeAt(index);
    return isSpace(code) || code === openingBracket || code === closingBracket || code === quote;
  }

  /** The operator under the cursor, which stays where it is. */
  operator(): QueryOperator | undefined {
    return this.#spelledOperator()?.[1];
  }

  /** Moves past the operator under the cursor. */
  takeOperator(): void {
    this.position += this.#spelledOperator()?.[0].length ?? 0;
  }

  /** Moves past `NOT`, or past a `!` in front of something. */
  takeNegation(): boolean {
    if (this.operator() === 'NOT') this.takeOperator();
    else if (this.peek() === '!' && this.isBeforeSomething()) this.position += 1;
    else return false;
    return true;
  }

  /** Whether a sign under the cursor has something that it is about; one that stands alone is an ordinary character. */
  isBeforeSomething(): boolean {
    return ['(', '"'].includes(this.peek(1)) || !this.endsWord(1);
  }

  #spelledOperator(): (typeof operators)[number] | undefined {
    const found = operators.find(([spelling]) => this.#text.startsWith(spelling, this.position));
    return found !== undefined && this.endsWord(found[0].length) ? found : undefined;
  }

  /** Reads up to the end of a word; with `stopAtColon`, up to the colon that ends a field name. */
  readWord(stopAtColon: boolean): QueryWord {
    const parts: string[] = [];
    let runStart = this.position;
    let wildcards = 0;
    let isPrefix = false;
    const pattern: string[] = [];
    const wordStart = this.position;
    while (!this.endsWord()) {
      const char = this.peek();
      if (char === '\\') {
        const run = this.#text.slice(runStart, this.position);
        const escaped = this.#escaped();
        parts.push(run, escaped);
        pattern.push(run, '*?\\'.includes(escaped) ? `\\${escaped}` : escaped);
        runStart = this.position;
        isPrefix = false;
        continue;
      }
      if (char === '^' || (char === ':' && stopAtColon && this.position > wordStart)) break;
      if (char === '~' && this.position > wordStart && this.#endsWithEdits()) break;
      isPrefix = char === '*' && wildcards === 0;
      if (char === '*' || char === '?') wildcards += 1;
      this.position += 1;
    }
    const run = this.#text.slice(runStart, this.position);
    return { text: parts.join('') + run, wildcards, isPrefix, pattern: pattern.join('') + run };
  }

  /** Reads from after the opening quote to after the closing one. */
  readQuoted(): string {
    const opening = this.position - 1;
    const parts: string[] = [];
    let runStart = this.position;
    while (!this.atEnd) {
      const char = this.peek();
      if (char === '"') {
        parts.push(this.#text.slice(runStart, this.position));
        this.position += 1;
        return parts.join('');
      }
      if (char === '\\') {
        parts.push(this.#text.slice(runStart, this.position), this.#escaped());
        runStart = this.position;
      } else {
        this.position += 1;
      }
    }
    throw this.error('a quote is opened and never closed', opening);
  }

  /** Reads a bound of a range: quoted, or bare up to a space or one of `stops`. */
  readBound(stops: string): QuotedOrBare {
    if (this.take('"')) return { text: this.readQuoted(), quoted: true };
    const parts: string[] = [];
    let runStart = this.position;
    while (!this.atEnd && !isSpace(this.#text.charCodeAt(this.position)) && !stops.includes(this.peek())) {
      if (this.peek() === '\\') {
        parts.push(this.#text.slice(runStart, this.position), this.#escaped());
        runStart = this.position;
      } else {
        this.position += 1;
      }
    }
    parts.push(this.#text.slice(runStart, this.position));
    return { text: parts.join(''), quoted: false };
  }

  /** Reads digits, with a fraction when `fraction` says so; undefined when there are none. */
  readNumber(fraction: boolean): number | undefined {
    const pattern = fraction ? /\d{1,9}(?:\.\d{1,9})?/y : /\d{1,9}/y;
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.#text);
    if (!found) return undefined;
    this.position = pattern.lastIndex;
    return Number(found[0]);
  }

  /** Whether a range, a comparison or a regular expression stands here: all of them are about a field. */
  needsField(): boolean {
    return /[[{<>]/.test(this.peek()) || this.startsExpression();
  }

  /** Whether a regular expression stands here: a slash, something, and a slash that ends the word. */
  startsExpression(): boolean {
    if (this.peek() !== '/' || this.peek(1) === '/') return false;
    for (let index = this.position + 1; index < this.#text.length; index += 1) {
      const char = this.#text[index];
      if (char === '\\') index += 1;
      else if (char === '/') return /^$|[\s)^]/.test(this.#text[index + 1] ?? '');
    }
    return false;
  }

  /** Reads the expression that `startsExpression` has seen; only `\\/` is resolved. */
  readExpression(): string {
    const start = this.position + 1;
    let end = start;
    while (this.#text[end] !== '/') end += this.#text[end] === '\\' ? 2 : 1;
    this.position = end + 1;
    return this.#text.slice(start, end).replaceAll('\\/', '/');
  }

  /** A syntax error that says where, counting characters from 1. */
  error(what: string, position = this.position): ServiceError {
    return new ServiceError(
      'invalid_query',
      `${this.#where}: ${what}, at character ${position + 1}; a backslash makes a special character ordinary`,
      { details: { position } },
    );
  }

  #escaped(): string {
    const code = this.#text.codePointAt(this.position + 1);
    if (code === undefined) throw this.error('a backslash has nothing to escape');
    const char = String.fromCodePoint(code);
    this.position += 1 + char.length;
    return char;
  }

  /** Whether the `~` under the cursor asks for fuzziness: the word ends with it, or with it and a number. */
  #endsWithEdits(): boolean {
    let ahead = 1;
    while (ahead <= 3 && /[0-9.]/.test(this.peek(ahead))) ahead += 1;
    return this.endsWord(ahead) || this.peek(ahead) === '^';
  }
}

function isSpace(code: number): boolean {
  if (code <= 0x20) return true;
  if (code < 0xa0) return code === 0x7f;
  return (
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    (code >= 0x2028 && code <= 0x202f && code !== 0x202a && code !== 0x202b && code !== 0x202c) ||
    code === 0x205f ||
    code === 0x3000 ||
    code === 0xfeff
  );
}
