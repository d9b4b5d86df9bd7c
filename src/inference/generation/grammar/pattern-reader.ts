import { complement } from './code-ranges.ts';
import type { CodeRange } from './grammar-writer.ts';
import { UnsupportedKeyword } from './schema-keywords.ts';

/** A regular expression as it is read. */
export type Pattern =
  | { readonly kind: 'character'; readonly ranges: readonly CodeRange[] }
  | { readonly kind: 'sequence'; readonly parts: readonly Pattern[] }
  | { readonly kind: 'either'; readonly ways: readonly Pattern[] }
  /** Without `max` there is no upper bound. */
  | { readonly kind: 'repeat'; readonly of: Pattern; readonly min: number; readonly max: number | undefined };

const patternCharsMax = 1_024;
const groupsDeepMax = 16;
/** The most repetitions that the engine takes. */
export const repetitionsMax = 2_000;

const digit: CodeRange[] = [[48, 57]];
const word: CodeRange[] = [...digit, [65, 90], [95, 95], [97, 122]];
const blank: CodeRange[] = [
  [9, 13],
  [32, 32],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
const lineEnds: CodeRange[] = [
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
];
const classes: Readonly<Record<string, CodeRange[]>> = {
  d: digit,
  w: word,
  s: blank,
  D: complement(digit),
  W: complement(word),
  S: complement(blank),
};
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 };
/** Any character at all. */
export const anyCharacter: Pattern = { kind: 'character', ranges: complement([]) };

/**
 * A regular expression (ECMA-262 with the flag `u`) as what a whole text has to be: literals, classes, groups,
 * alternatives, repetitions, and anchors at either end. Throws `UnsupportedKeyword` for anything else in it.
 */
export function readPattern(pattern: string): Pattern {
  if (pattern.length > patternCharsMax) throw refused(pattern, `is longer than ${patternCharsMax} characters`);
  try {
    new RegExp(pattern, 'u');
  } catch {
    throw refused(pattern, 'is not a regular expression');
  }
  return new PatternReader(pattern).whole();
}

function refused(pattern: string, why: string): UnsupportedKeyword {
  const shown = pattern.length > 60 ? `${pattern.slice(0, 60)}...` : pattern;
  return new UnsupportedKeyword('pattern', `pattern: "${shown}" ${why}`);
}

class PatternReader {
  readonly #pattern: string;
  readonly #characters: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
    this.#characters = [...pattern];
  }

  whole(): Pattern {
    const ways: Pattern[] = [];
    do {
      const before = this.#take('^') ? [] : [anyText];
      const inside = this.#sequence(0);
      const after = this.#take('$') ? [] : [anyText];
      ways.push(sequence([...before, inside, ...after]));
    } while (this.#take('|'));
    if (this.#at < this.#characters.length) throw this.#unsupported(this.#peek());
    return either(ways);
  }

  #sequence(depth: number): Pattern {
    const parts: Pattern[] = [];
    for (let next = this.#peek(); next !== '' && !'|)'.includes(next); next = this.#peek()) {
      if (next === '$') break;
      parts.push(this.#quantified(this.#atom(depth)));
    }
    return sequence(parts);
  }

  #atom(depth: number): Pattern {
    const next = this.#next();
    if (next === '(') return this.#group(depth + 1);
    if (next === '[') return this.#class();
    if (next === '.') return character(complement(lineEnds));
    if (next === '\\') return character(this.#escape());
    if (next === '^' || next === '$') throw this.#unsupported(next);
    return character([codeRange(next)]);
  }

  #group(depth: number): Pattern {
    if (depth > groupsDeepMax) throw refused(this.#pattern, `nests deeper than ${groupsDeepMax} groups`);
    if (this.#take('?') && !this.#take(':')) throw this.#unsupported(`(?${this.#peek()}`);
    const ways = [this.#sequence(depth)];
    while (this.#take('|')) ways.push(this.#sequence(depth));
    if (!this.#take(')')) throw this.#unsupported(this.#peek());
    return either(ways);
  }

  #class(): Pattern {
    const negated = this.#take('^');
    const ranges: CodeRange[] = [];
    while (!this.#take(']')) {
      const low = this.#classMember();
      const [first] = low;
      if (low.length === 1 && first !== undefined && this.#peek() === '-' && this.#characters[this.#at + 1] !== ']') {
        this.#at += 1;
        const [last] = this.#classMember();
        ranges.push([first[0], last?.[1] ?? first[1]]);
      } else ranges.push(...low);
    }
    return character(negated ? complement(ranges) : ranges);
  }

  #classMember(): CodeRange[] {
    const next = this.#next();
    if (next !== '\\') return [codeRange(next)];
    return this.#take('b') ? [[8, 8]] : this.#escape();
  }

  /** After the backslash. */
  #escape(): CodeRange[] {
    const next = this.#next();
    const named = classes[next];
    if (named !== undefined) return named;
    const control = controls[next];
    if (control !== undefined) return [[control, control]];
    if (next === 'x') return this.#hex(2);
    if (next === 'u' && this.#peek() !== '{') return this.#hex(4);
    if (/[A-Za-z0-9]/.test(next)) throw this.#unsupported(`\\${next}`);
    return [codeRange(next)];
  }

  #hex(digits: number): CodeRange[] {
    const code = Number.parseInt(this.#characters.slice(this.#at, this.#at + digits).join(''), 16);
    this.#at += digits;
    return [[code, code]];
  }

  #quantified(atom: Pattern): Pattern {
    const bounds = this.#bounds();
    if (bounds === undefined) return atom;
    this.#take('?');
    const [min, max] = bounds;
    if (Math.max(min, max ?? 0) > repetitionsMax) {
      throw refused(this.#pattern, `repeats more than ${repetitionsMax} times`);
    }
    return { kind: 'repeat', of: atom, min, max };
  }

  #bounds(): readonly [min: number, max: number | undefined] | undefined {
    if (this.#take('*')) return [0, undefined];
    if (this.#take('+')) return [1, undefined];
    if (this.#take('?')) return [0, 1];
    if (!this.#take('{')) return undefined;
    let inside = '';
    while (!this.#take('}')) inside += this.#next();
    const [min = '', max] = inside.split(',');
    return [Number(min), max === undefined ? Number(min) : max === '' ? undefined : Number(max)];
  }

  #peek(): string {
    return this.#characters[this.#at] ?? '';
  }

  #next(): string {
    const next = this.#peek();
    if (next === '') throw refused(this.#pattern, 'ends too early');
    this.#at += 1;
    return next;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at += 1;
    return true;
  }

  #unsupported(what: string): UnsupportedKeyword {
    return refused(this.#pattern, `uses ${what} in a way that cannot be enforced`);
  }
}

function codeRange(character: string): CodeRange {
  const code = character.codePointAt(0) ?? 0;
  return [code, code];
}

const anyText: Pattern = { kind: 'repeat', of: anyCharacter, min: 0, max: undefined };

function character(ranges: readonly CodeRange[]): Pattern {
  return { kind: 'character', ranges };
}

function sequence(parts: readonly Pattern[]): Pattern {
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { kind: 'sequence', parts };
}

function either(ways: readonly Pattern[]): Pattern {
  const [only] = ways;
  return ways.length === 1 && only !== undefined ? only : { kind: 'either', ways };
}

/** Code points of the shortest and of the longest text of a pattern; without `max` there is no longest. */
export function lengthsOf(pattern: Pattern): { readonly min: number; readonly max: number | undefined } {
  if (pattern.kind === 'character') return { min: 1, max: 1 };
  if (pattern.kind === 'repeat') {
    const { min, max } = lengthsOf(pattern.of);
    const most = max === 0 ? 0 : pattern.max;
    return { min: min * pattern.min, max: max === undefined || most === undefined ? undefined : max * most };
  }
  const all = (pattern.kind === 'sequence' ? pattern.parts : pattern.ways).map(lengthsOf);
  const isSequence = pattern.kind === 'sequence';
  const joined = (lengths: readonly number[], other: (...all: number[]) => number) =>
    isSequence ? lengths.reduce((sum, each) => sum + each, 0) : other(...lengths);
  const longest = all.flatMap(({ max }) => max ?? []);
  return {
    min: joined(
      all.map(({ min }) => min),
      Math.min,
    ),
    max: longest.length < all.length ? undefined : joined(longest, Math.max),
  };
}
