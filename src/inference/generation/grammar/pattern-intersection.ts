import { contains } from './code-ranges.ts';
import type { CodeRange, GrammarWriter } from './grammar-writer.ts';
import { inString } from './pattern-grammar.ts';
import type { Pattern } from './pattern-reader.ts';

/**
 * Bounds on what is worked out, in some tens of milliseconds; patterns that need more
 * are too much together. `steps`: edges and states looked at.
 */
const bounds = { automatonStates: 4_096, states: 1_024, steps: 200_000 } as const;

/** Code points that a text may have; without `max` there is no upper bound. */
export interface Lengths {
  readonly min: number;
  readonly max: number | undefined;
}

interface Edge {
  readonly ranges: readonly CodeRange[];
  readonly to: number;
}

/** A place in all patterns at once, and how much was written up to it. */
interface Place {
  readonly sets: readonly (readonly number[])[];
  readonly count: number;
}

interface State {
  readonly accepts: boolean;
  /** By state. */
  readonly next: ReadonlyMap<number, string>;
}

/**
 * The inside of a JSON string that all patterns match, of a length within the bounds, as rules that each write one
 * character and name the next (the product of the patterns' automata). Undefined where that takes too many rules;
 * `none` where there is no such text.
 */
export function intersectionExpression(
  patterns: readonly Pattern[],
  lengths: Lengths,
  writer: GrammarWriter,
): string | 'none' | undefined {
  try {
    const states = product(patterns.map(automaton), lengths);
    const alive = leadingSomewhere(states);
    return alive.has(0) ? expressionOf(states, alive, writer) : 'none';
  } catch (error) {
    if (error instanceof TooMuch) return undefined;
    throw error;
  }
}

class TooMuch extends Error {}

/** Thompson's construction: edges that read a character, and steps that read none. */
class Automaton {
  readonly edges: Edge[][] = [[]];
  readonly steps: number[][] = [[]];
  readonly end: number;

  constructor(pattern: Pattern) {
    this.end = this.#add(pattern, 0);
  }

  /** The states that are reached without a character, sorted. */
  closure(states: readonly number[]): number[] {
    const reached = new Set(states);
    for (const state of reached) for (const next of this.steps[state] ?? []) reached.add(next);
    return [...reached].sort((left, right) => left - right);
  }

  /** Adds the pattern behind a state; where it ends. */
  #add(pattern: Pattern, from: number): number {
    switch (pattern.kind) {
      case 'character': {
        const to = this.#state();
        this.edges[from]?.push({ ranges: pattern.ranges, to });
        return to;
      }
      case 'sequence':
        return pattern.parts.reduce((at, part) => this.#add(part, at), from);
      case 'either': {
        const end = this.#state();
        for (const way of pattern.ways) this.#step(this.#add(way, from), end);
        return end;
      }
      case 'repeat':
        return this.#repeat(pattern, from);
    }
  }

  #repeat({ of, min, max }: Extract<Pattern, { kind: 'repeat' }>, from: number): number {
    let at = from;
    for (let time = 0; time < min; time += 1) at = this.#add(of, at);
    // Of its own: nothing else may begin where the loop comes back to.
    const end = this.#state();
    if (max === undefined) {
      this.#step(at, end);
      this.#step(this.#add(of, end), end);
      return end;
    }
    for (let time = min; time < max; time += 1) {
      this.#step(at, end);
      at = this.#add(of, at);
    }
    this.#step(at, end);
    return end;
  }

  #step(from: number, to: number): void {
    this.steps[from]?.push(to);
  }

  #state(): number {
    if (this.edges.length >= bounds.automatonStates) throw new TooMuch();
    this.edges.push([]);
    return this.steps.push([]) - 1;
  }
}

function automaton(pattern: Pattern): Automaton {
  return new Automaton(pattern);
}

/** The states that are reached from the first one, by their numbers. */
function product(automata: readonly Automaton[], { min, max }: Lengths): State[] {
  const places: Place[] = [];
  const numbers = new Map<string, number>();
  const numberOf = (place: Place): number => {
    const key = `${place.sets.join(';')}#${place.count}`;
    const known = numbers.get(key);
    if (known !== undefined) return known;
    if (places.length >= bounds.states) throw new TooMuch();
    numbers.set(key, places.length);
    return places.push(place) - 1;
  };
  numberOf({ sets: automata.map((each) => each.closure([0])), count: 0 });
  const states: State[] = [];
  let steps = 0;
  // Grows while it is read.
  for (const { sets, count } of places) {
    const edges = automata.map(({ edges: all }, at) => (sets[at] ?? []).flatMap((state) => all[state] ?? []));
    const starts = startsOf(edges.flat());
    const held = sets.reduce((sum, each) => sum + each.length, 1);
    steps += starts.length * (edges.reduce((sum, each) => sum + each.length, 1) + held);
    if (steps > bounds.steps) throw new TooMuch();
    const ranges = new Map<number, CodeRange[]>();
    for (const [at, low] of count === max ? [] : starts.entries()) {
      const next = edges.map((each) => each.filter((edge) => contains(edge.ranges, low)).map(({ to }) => to));
      if (next.some(({ length }) => length === 0)) continue;
      const place = {
        sets: automata.map((each, which) => each.closure(next[which] ?? [])),
        count: max === undefined ? Math.min(count + 1, min) : count + 1,
      };
      const number = numberOf(place);
      ranges.set(number, [...(ranges.get(number) ?? []), [low, (starts[at + 1] ?? 0x110000) - 1]]);
    }
    const written = [...ranges].flatMap(([number, each]) => {
      const text = inString(each);
      return text === undefined ? [] : [[number, text] as const];
    });
    const isEnd = automata.every(({ end }, at) => sets[at]?.includes(end));
    states.push({ accepts: isEnd && count >= min, next: new Map(written) });
  }
  return states;
}

/** The code points at which other edges begin to apply, ascending. */
function startsOf(edges: readonly Edge[]): number[] {
  const starts = new Set(edges.flatMap(({ ranges }) => ranges.flatMap(([low, high]) => [low, high + 1])));
  return [...starts].filter((code) => code < 0x110000).sort((left, right) => left - right);
}

/** The states from which a text can be ended. */
function leadingSomewhere(states: readonly State[]): ReadonlySet<number> {
  const before = new Map<number, number[]>();
  for (const [from, { next }] of states.entries()) {
    for (const to of next.keys()) before.set(to, [...(before.get(to) ?? []), from]);
  }
  const alive = new Set(states.flatMap(({ accepts }, number) => (accepts ? [number] : [])));
  for (const state of alive) for (const from of before.get(state) ?? []) alive.add(from);
  return alive;
}

function expressionOf(states: readonly State[], alive: ReadonlySet<number>, writer: GrammarWriter): string {
  const edgesOf = (number: number) => [...(states[number]?.next ?? [])].filter(([to]) => alive.has(to));
  const entries = new Map<number, number>();
  for (const number of alive) for (const [to] of edgesOf(number)) entries.set(to, (entries.get(to) ?? 0) + 1);
  // A state with one way in and one way out needs no rule.
  const isStep = (number: number) =>
    number !== 0 && entries.get(number) === 1 && states[number]?.accepts === false && edgesOf(number).length === 1;
  const names = new Map<number, string>();
  for (const number of alive) {
    if (edgesOf(number).length > 0 && !isStep(number)) names.set(number, writer.reserve('at'));
  }
  const behind = (number: number): string => {
    const parts: string[] = [];
    let at = number;
    while (isStep(at)) {
      const [[to, text] = [0, '']] = edgesOf(at);
      parts.push(text);
      at = to;
    }
    return [...parts, names.get(at) ?? ''].join(' ').trimEnd();
  };
  for (const [number, name] of names) {
    const ways = edgesOf(number).map(([to, text]) => `${text} ${behind(to)}`.trimEnd());
    writer.define(name, states[number]?.accepts === true ? `(${ways.join(' | ')})?` : ways.join(' | '));
  }
  return names.get(0) ?? '""';
}
