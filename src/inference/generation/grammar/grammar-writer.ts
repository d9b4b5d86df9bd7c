import { ServiceError } from '../../../protocol/service-error.ts';

/** Bounds of one grammar, whether compiled from a schema or written by a caller. */
export const grammarBounds = { rules: 4_096, chars: 262_144 } as const;

/** Collects the rules of a GBNF grammar; rules that say the same are kept once. */
export class GrammarWriter {
  readonly #rules = new Map<string, string>();
  readonly #nameOfBody = new Map<string, string>();
  #chars = 0;

  /** A name for a rule that is defined later: for what contains itself. */
  reserve(hint: string): string {
    const name = `${hint}-${this.#rules.size}`;
    this.#rules.set(name, '');
    if (this.#rules.size > grammarBounds.rules) {
      throw tooLarge(`the grammar needs more than ${grammarBounds.rules} rules`);
    }
    return name;
  }

  define(name: string, body: string): void {
    this.#rules.set(name, body);
    this.#chars += name.length + body.length + 6;
    if (this.#chars > grammarBounds.chars) {
      throw tooLarge(`the grammar is longer than ${grammarBounds.chars} characters`);
    }
  }

  /** The name of a rule with this body. */
  rule(hint: string, body: string): string {
    const known = this.#nameOfBody.get(body);
    if (known !== undefined) return known;
    const name = this.reserve(hint);
    this.define(name, body);
    this.#nameOfBody.set(body, name);
    return name;
  }

  /** The whole grammar, which accepts what `root` (an expression) accepts. */
  text(root: string): string {
    const lines = [...this.#rules].map(([name, body]) => `${name} ::= ${body}\n`);
    return `root ::= ${root}\n${lines.join('')}`;
  }
}

export function tooLarge(message: string): ServiceError {
  return new ServiceError('unsupported_response_format', `${message}; make the schema smaller`);
}

/** `text` as a quoted GBNF literal. */
export function literal(text: string): string {
  const escaped = Array.from(text, (character) => {
    if (character === '"' || character === '\\') return `\\${character}`;
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 || code === 0x7f ? `\\x${hex(code, 2)}` : character;
  });
  return `"${escaped.join('')}"`;
}

export type CodeRange = readonly [low: number, high: number];

/** A GBNF class of these code points; `negated` for all others. */
export function characterClass(ranges: readonly CodeRange[], negated = false): string {
  const parts = ranges.map(([low, high]) => (low === high ? classCode(low) : `${classCode(low)}-${classCode(high)}`));
  return `[${negated ? '^' : ''}${parts.join('')}]`;
}

function classCode(code: number): string {
  const plain = (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
  if (plain) return String.fromCharCode(code);
  if (code <= 0xff) return `\\x${hex(code, 2)}`;
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).toUpperCase().padStart(digits, '0');
}

/** Alternatives as one expression that can stand anywhere. */
export function oneOf(alternatives: readonly string[]): string {
  const [first] = alternatives;
  return alternatives.length === 1 && first !== undefined ? first : `(${alternatives.join(' | ')})`;
}

/** `{min,max}` in its shortest form; without `max` there is no upper bound. */
export function repeated(expression: string, min: number, max?: number): string {
  if (min === 1 && max === 1) return expression;
  if (max === 0) return '""';
  if (max === undefined) return `${expression}${min === 0 ? '*' : min === 1 ? '+' : `{${min},}`}`;
  if (min === 0 && max === 1) return `${expression}?`;
  return `${expression}{${min === max ? min : `${min},${max}`}}`;
}

/**
 * Everything up to and including the first `end`: one rule for each of its prefixes, so that no beginning of it slips
 * through (Knuth, Morris, Pratt).
 */
export function untilText(writer: GrammarWriter, end: string): string {
  const characters = [...end];
  const names = characters.map(() => writer.reserve('until'));
  const nextState = (state: number, character: string): number => {
    const read = [...characters.slice(0, state), character];
    for (let length = read.length; length > 0; length -= 1) {
      const tail = read.slice(read.length - length);
      if (tail.every((each, at) => each === characters[at])) return length;
    }
    return 0;
  };
  const alphabet = [...new Set(characters)];
  const rest = characterClass(
    alphabet.map((each): CodeRange => [codeOf(each), codeOf(each)]),
    true,
  );
  names.forEach((name, state) => {
    const ways = alphabet.map((character) => {
      const next = nextState(state, character);
      return next === characters.length ? literal(character) : `${literal(character)} ${names[next]}`;
    });
    writer.define(name, [...ways, `${rest} ${names[0]}`].join(' | '));
  });
  return names[0] ?? '""';
}

function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}
