import { complement, contains, normalised, without } from './code-ranges.ts';
import { type CodeRange, characterClass, type GrammarWriter, literal, oneOf, repeated } from './grammar-writer.ts';
import { characterRule } from './json-rules.ts';
import { UnsupportedKeyword } from './schema-keywords.ts';

const patternCharsMax = 1_024;
const groupsDeepMax = 16;
/** The most repetitions that the engine takes. */
export const repetitionsMax = 2_000;

const digit: CodeRange[] = [[48, 57]];
const word: CodeRange[] = [...digit, [65, 90], [95, 95], [97, 122]];
const blank: CodeRange[] = [
  [9, 13],
  [32, 32],
  [160, 160],
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
/** Code points with a two-character escape in JSON. */
const escapes = [8, 9, 10, 12, 13, 0x22, 0x5c];
/** Characters that cannot stand in a JSON string as they are, and half characters. */
const notRaw: readonly CodeRange[] = [
  [0, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
  [0x7f, 0x7f],
  [0xd800, 0xdfff],
];

/**
 * The inside of a JSON string that matches a regular expression (ECMA-262 with the flag `u`): literals, classes, groups,
 * alternatives, repetitions, and anchors at either end.
 */
export function patternExpression(pattern: string, writer: GrammarWriter): string {
  if (pattern.length > patternCharsMax) throw refused(pattern, `is longer than ${patternCharsMax} characters`);
  try {
    new RegExp(pattern, 'u');
  } catch {
    throw refused(pattern, 'is not a regular expression');
  }
  return new PatternReader(pattern, writer).whole();
}

function refused(pattern: string, why: string): UnsupportedKeyword {
  const shown = pattern.length > 60 ? `${pattern.slice(0, 60)}...` : pattern;
  return new UnsupportedKeyword('pattern', `pattern: "${shown}" ${why}`);
}

class PatternReader {
  readonly #pattern: string;
  readonly #characters: readonly string[];
  readonly #writer: GrammarWriter;
  readonly #any: string;
  #at = 0;

  constructor(pattern: string, writer: GrammarWriter) {
    this.#pattern = pattern;
    this.#characters = [...pattern];
    this.#writer = writer;
    this.#any = characterRule(writer);
  }

  whole(): string {
    const ways: string[] = [];
    do {
      const open = this.#take('^') ? '' : `${this.#any}* `;
      const inside = this.#sequence(0);
      const close = this.#take('$') ? '' : ` ${this.#any}*`;
      ways.push(`${open}${inside}${close}`);
    } while (this.#take('|'));
    if (this.#at < this.#characters.length) throw this.#unsupported(this.#peek());
    return oneOf(ways);
  }

  #sequence(depth: number): string {
    const parts: string[] = [];
    for (let next = this.#peek(); next !== '' && !'|)'.includes(next); next = this.#peek()) {
      if (next === '$') break;
      parts.push(this.#quantified(this.#atom(depth)));
    }
    return parts.length === 0 ? '""' : parts.join(' ');
  }

  #atom(depth: number): string {
    const next = this.#next();
    if (next === '(') return this.#group(depth + 1);
    if (next === '[') return this.#class();
    if (next === '.') return inString(complement(lineEnds));
    if (next === '\\') return inString(this.#escape());
    if (next === '^' || next === '$') throw this.#unsupported(next);
    return inString([codeRange(next)]);
  }

  #group(depth: number): string {
    if (depth > groupsDeepMax) throw refused(this.#pattern, `nests deeper than ${groupsDeepMax} groups`);
    if (this.#take('?') && !this.#take(':')) throw this.#unsupported(`(?${this.#peek()}`);
    const ways = [this.#sequence(depth)];
    while (this.#take('|')) ways.push(this.#sequence(depth));
    if (!this.#take(')')) throw this.#unsupported(this.#peek());
    return `(${ways.join(' | ')})`;
  }

  #class(): string {
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
    return inString(negated ? complement(ranges) : ranges);
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

  #quantified(atom: string): string {
    const bounds = this.#bounds();
    if (bounds === undefined) return atom;
    this.#take('?');
    const [min, max] = bounds;
    if (Math.max(min, max ?? 0) > repetitionsMax) {
      throw refused(this.#pattern, `repeats more than ${repetitionsMax} times`);
    }
    // A rule of its own: the engine multiplies repetitions within repetitions.
    return repeated(atom.startsWith('[') ? atom : this.#writer.rule('group', atom), min, max);
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

/** One character out of the ranges, as it stands in a JSON string. */
function inString(ranges: readonly CodeRange[]): string {
  const all = normalised(ranges);
  const raw = without(all, notRaw);
  const [only] = raw;
  const single = raw.length === 1 && only !== undefined && only[0] === only[1];
  const shown = single ? [literal(String.fromCodePoint(only[0]))] : raw.length > 0 ? [characterClass(raw)] : [];
  const escaped = escapes
    .filter((code) => contains(all, code))
    .map((code) => literal(JSON.stringify(String.fromCharCode(code)).slice(1, -1)));
  const ways = [...shown, ...escaped];
  // Nothing of it can be written: a class that nothing satisfies.
  if (ways.length === 0) throw new UnsupportedKeyword('pattern', 'pattern: nothing matches it');
  return oneOf(ways);
}
