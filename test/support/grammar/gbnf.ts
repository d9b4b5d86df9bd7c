type Expression =
  | { kind: 'text'; characters: string[] }
  | { kind: 'class'; ranges: [number, number][]; negated: boolean }
  | { kind: 'rule'; name: string }
  | { kind: 'sequence'; parts: Expression[] }
  | { kind: 'choice'; ways: Expression[] }
  | { kind: 'repeat'; inside: Expression; min: number; max: number };

/** The ends of each rule, by where it begins. */
type Memo = Map<string, Map<number, readonly number[]>>;

/** A GBNF grammar as llama.cpp reads it, to ask what it accepts and for texts that it produces. */
export class Gbnf {
  readonly #rules = new Map<string, Expression>();
  readonly #costs = new Map<string, number>();

  constructor(text: string) {
    for (const line of text.split('\n').filter((each) => each !== '')) {
      const at = line.indexOf(' ::= ');
      const reader = new RuleReader(line.slice(at + 5));
      this.#rules.set(line.slice(0, at), reader.rule());
    }
    for (let changed = true; changed; ) {
      changed = false;
      for (const [name, expression] of this.#rules) {
        const cost = this.#cost(expression) + 1;
        if (cost < (this.#costs.get(name) ?? Number.POSITIVE_INFINITY)) {
          this.#costs.set(name, cost);
          changed = true;
        }
      }
    }
  }

  /** Whether all of `text` is a text of the grammar. */
  accepts(text: string): boolean {
    const characters = [...text];
    return this.#ends({ kind: 'rule', name: 'root' }, 0, characters, new Map()).includes(characters.length);
  }

  /** Some text of the grammar; `random` gives numbers from 0 to below 1. */
  sample(random: () => number): string {
    return this.#write({ kind: 'rule', name: 'root' }, random, 60);
  }

  #rule(name: string): Expression {
    const found = this.#rules.get(name);
    if (found === undefined) throw new Error(`no rule ${name}`);
    return found;
  }

  #cost(expression: Expression): number {
    switch (expression.kind) {
      case 'rule':
        this.#rule(expression.name);
        return this.#costs.get(expression.name) ?? Number.POSITIVE_INFINITY;
      case 'sequence':
        return expression.parts.reduce((sum, part) => sum + this.#cost(part), 0);
      case 'choice':
        return Math.min(...expression.ways.map((way) => this.#cost(way)));
      case 'repeat':
        return expression.min === 0 ? 0 : expression.min * this.#cost(expression.inside);
      default:
        return 1;
    }
  }

  #write(expression: Expression, random: () => number, budget: number): string {
    switch (expression.kind) {
      case 'text':
        return expression.characters.join('');
      case 'class':
        return pick(expression, random);
      case 'rule':
        return this.#write(this.#rule(expression.name), random, budget - 1);
      case 'sequence':
        return expression.parts.map((part) => this.#write(part, random, budget - 1)).join('');
      case 'choice': {
        const cheapest = Math.min(...expression.ways.map((way) => this.#cost(way)));
        const ways = budget > 0 ? expression.ways : expression.ways.filter((way) => this.#cost(way) === cheapest);
        return this.#write(
          ways[Math.floor(random() * ways.length)] ?? { kind: 'sequence', parts: [] },
          random,
          budget - 1,
        );
      }
      case 'repeat': {
        const most = budget > 0 ? Math.min(expression.max, expression.min + 3) : expression.min;
        const count = expression.min + Math.floor(random() * (most - expression.min + 1));
        return Array.from({ length: count }, () => this.#write(expression.inside, random, budget - 2)).join('');
      }
    }
  }

  /** Positions where a match of the expression that begins at `from` may end, each once. */
  #ends(expression: Expression, from: number, text: readonly string[], memo: Memo): readonly number[] {
    switch (expression.kind) {
      case 'text': {
        const { characters } = expression;
        for (let at = 0; at < characters.length; at += 1) if (text[from + at] !== characters[at]) return [];
        return [from + characters.length];
      }
      case 'class':
        return from < text.length && inClass(expression, text[from] ?? '') ? [from + 1] : [];
      case 'rule': {
        const known = memo.get(expression.name) ?? new Map<number, readonly number[]>();
        memo.set(expression.name, known);
        const ends = known.get(from) ?? this.#ends(this.#rule(expression.name), from, text, memo);
        known.set(from, ends);
        return ends;
      }
      case 'sequence': {
        let ends: readonly number[] = [from];
        for (const part of expression.parts) ends = this.#endsFromAll(part, ends, text, memo);
        return ends;
      }
      case 'choice':
        return [...new Set(expression.ways.flatMap((way) => this.#ends(way, from, text, memo)))];
      case 'repeat': {
        let ends: readonly number[] = [from];
        const all = new Set<number>(expression.min === 0 ? [from] : []);
        for (let count = 1; count <= expression.max && ends.length > 0; count += 1) {
          ends = this.#endsFromAll(expression.inside, ends, text, memo);
          if (count < expression.min) continue;
          const before = all.size;
          for (const end of ends) all.add(end);
          if (all.size === before && count > expression.min) break;
        }
        return [...all];
      }
    }
  }

  #endsFromAll(expression: Expression, starts: readonly number[], text: readonly string[], memo: Memo) {
    const [only] = starts;
    // Mostly there is one, and texts of thousands of characters need no set for each.
    if (only !== undefined && starts.length === 1) return this.#ends(expression, only, text, memo);
    return [...new Set(starts.flatMap((start) => this.#ends(expression, start, text, memo)))];
  }
}

function inClass({ ranges, negated }: { ranges: [number, number][]; negated: boolean }, character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return ranges.some(([low, high]) => code >= low && code <= high) !== negated;
}

/** Mostly plain characters, now and then one from far away. */
function pick(expression: { ranges: [number, number][]; negated: boolean }, random: () => number): string {
  for (let tries = 0; tries < 200; tries += 1) {
    const [low, high] = expression.negated
      ? ([0x20, random() < 0.9 ? 0x7e : 0x1f9ff] as const)
      : (expression.ranges[Math.floor(random() * expression.ranges.length)] ?? ([97, 97] as const));
    const code = low + Math.floor(random() * (high - low + 1));
    const character = String.fromCodePoint(code);
    const half = code >= 0xd800 && code <= 0xdfff;
    if (!half && inClass(expression, character)) return character;
  }
  throw new Error('a class with hardly any character');
}

class RuleReader {
  readonly #text: string[];
  #at = 0;

  constructor(text: string) {
    this.#text = [...text];
  }

  rule(): Expression {
    const expression = this.#choice();
    if (this.#at < this.#text.length) throw new Error(`left over: ${this.#text.slice(this.#at).join('')}`);
    return expression;
  }

  #choice(): Expression {
    const ways = [this.#sequence()];
    while (this.#take('|')) ways.push(this.#sequence());
    return ways.length === 1 ? (ways[0] as Expression) : { kind: 'choice', ways };
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    for (this.#blanks(); this.#at < this.#text.length && !'|)'.includes(this.#peek()); this.#blanks()) {
      parts.push(this.#repeated(this.#atom()));
    }
    return parts.length === 1 ? (parts[0] as Expression) : { kind: 'sequence', parts };
  }

  #atom(): Expression {
    if (this.#take('"')) {
      const characters: string[] = [];
      while (!this.#take('"', false)) characters.push(String.fromCodePoint(this.#code()));
      return { kind: 'text', characters };
    }
    if (this.#take('(')) {
      const inside = this.#choice();
      if (!this.#take(')')) throw new Error('a bracket is open');
      return inside;
    }
    if (this.#take('[', false)) return this.#class();
    let name = '';
    while (/[A-Za-z0-9-]/.test(this.#peek())) name += this.#text[this.#at++];
    if (name === '') throw new Error(`what is ${this.#peek()} in ${this.#text.join('')}`);
    return { kind: 'rule', name };
  }

  #class(): Expression {
    const negated = this.#take('^', false);
    const ranges: [number, number][] = [];
    while (!this.#take(']', false)) {
      const low = this.#code();
      const ranged = this.#peek() === '-' && this.#text[this.#at + 1] !== ']';
      if (ranged) this.#at += 1;
      ranges.push([low, ranged ? this.#code() : low]);
    }
    return { kind: 'class', ranges, negated };
  }

  #code(): number {
    const next = this.#text[this.#at++] ?? '';
    if (next !== '\\') return next.codePointAt(0) ?? 0;
    const escaped = this.#text[this.#at++] ?? '';
    const digits = { x: 2, u: 4, U: 8 }[escaped];
    if (digits !== undefined) {
      const code = Number.parseInt(this.#text.slice(this.#at, this.#at + digits).join(''), 16);
      this.#at += digits;
      return code;
    }
    const named: Record<string, string> = { n: '\n', r: '\r', t: '\t' };
    if (!'nrt"\\[]'.includes(escaped)) throw new Error(`unknown escape \\${escaped}`);
    return (named[escaped] ?? escaped).charCodeAt(0);
  }

  #repeated(inside: Expression): Expression {
    if (this.#take('*', false)) return { kind: 'repeat', inside, min: 0, max: Number.POSITIVE_INFINITY };
    if (this.#take('+', false)) return { kind: 'repeat', inside, min: 1, max: Number.POSITIVE_INFINITY };
    if (this.#take('?', false)) return { kind: 'repeat', inside, min: 0, max: 1 };
    if (!this.#take('{', false)) return inside;
    let text = '';
    while (!this.#take('}', false)) text += this.#text[this.#at++];
    const [min = '', max] = text.split(',');
    const most = max === undefined ? Number(min) : max === '' ? Number.POSITIVE_INFINITY : Number(max);
    return { kind: 'repeat', inside, min: Number(min), max: most };
  }

  #peek(): string {
    return this.#text[this.#at] ?? '';
  }

  #blanks(): void {
    while (this.#peek() === ' ') this.#at += 1;
  }

  #take(character: string, skipBlanks = true): boolean {
    if (skipBlanks) this.#blanks();
    if (this.#peek() !== character) return false;
    this.#at += 1;
    return true;
  }
}
