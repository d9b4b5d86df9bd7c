import { limits } from '../../config/limits.ts';
import type { TableSchema } from '../../protocol/database/tables.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { QueryBudget } from '../nodes/query-budget.ts';
import { allOf, anyOf, type MatchNode, type PlanNode } from '../plan/plan-nodes.ts';

/** Characters of one term of a group. */
const termCharsMax = 256;
const oneWay = '=>';

interface Word {
  /** In lowercase. */
  text: string;
  from: number;
  to: number;
}

/** A term of a group. */
interface Term {
  text: string;
  words: number;
  /** The same for terms that are compared as the same. */
  key: string;
}

/** A part of a text for which other texts may stand. */
interface Span {
  from: number;
  to: number;
  alternatives: ReadonlySet<string>;
}

/**
 * The synonyms of a table. A group such as `["tv", "television"]`, or the text `"tv, television"`: each stands
 * for the others. `"laptop => notebook, ultrabook"`: a query for the left finds the right too, but not the reverse.
 * Terms are compared by their words in lowercase, as they are written, before any stemming.
 */
export class Synonyms {
  readonly #alternatives = new Map<string, Set<string>>();
  #wordsMax = 0;

  /** Fails with `invalid_schema`. */
  constructor(groups: unknown) {
    if (groups === undefined || groups === null) return;
    if (!Array.isArray(groups)) throw invalid('', 'must be an array of groups');
    if (groups.length > limits.synonymGroupsMax) throw invalid('', `has at most ${limits.synonymGroupsMax} groups`);
    for (const [index, group] of groups.entries()) this.#add(group, `[${index}]`);
  }

  get isEmpty(): boolean {
    return this.#wordsMax === 0;
  }

  #add(group: unknown, at: string): void {
    if (typeof group === 'string' && group.includes(oneWay)) {
      const [left, right, ...others] = group.split(oneWay);
      if (left === undefined || right === undefined || others.length > 0) throw invalid(at, `has one "${oneWay}"`);
      const targets = readTerms(right.split(','), at, 1);
      for (const source of readTerms(left.split(','), at, 1)) this.#stand(source, targets);
      return;
    }
    const terms = readTerms(typeof group === 'string' ? group.split(',') : group, at, 2);
    for (const term of terms) this.#stand(term, terms);
  }

  #stand({ key, words }: Term, targets: readonly Term[]): void {
    const known = this.#alternatives.get(key) ?? new Set();
    for (const target of targets) if (target.key !== key) known.add(target.text);
    this.#alternatives.set(key, known);
    this.#wordsMax = Math.max(this.#wordsMax, words);
  }

  /** The node with alternatives beside the words of its match nodes; several words stand as a phrase. */
  expand(node: PlanNode, budget: QueryBudget): PlanNode {
    if (node.kind === 'match') return this.#expandMatch(node, budget);
    if (node.kind !== 'bool') return node;
    const each = (nodes: PlanNode[]) => nodes.map((clause) => this.expand(clause, budget));
    const { must, should, must_not, filter } = node;
    return { ...node, must: each(must), should: each(should), must_not: each(must_not), filter: each(filter) };
  }

  #expandMatch(node: MatchNode, budget: QueryBudget): PlanNode {
    const spans = this.#spansOf(node.text);
    if (spans.length === 0) return node;
    budget.spend(spans.reduce((total, { alternatives }) => total + alternatives.size + 1, 0));
    const others = (span: Span) => Array.from(span.alternatives, (text) => alternative(node, text));
    if (node.operator === 'or') return anyOf([node, ...spans.flatMap(others)]);
    const parts: PlanNode[] = [];
    const keep = (text: string) => {
      if (wordsOf(text).length > 0) parts.push({ ...node, text });
    };
    let from = 0;
    for (const span of spans) {
      keep(node.text.slice(from, span.from));
      parts.push(anyOf([{ ...node, text: node.text.slice(span.from, span.to) }, ...others(span)]));
      from = span.to;
    }
    keep(node.text.slice(from));
    return allOf(parts);
  }

  /** From the left, the longest terms that are known; they do not overlap. */
  #spansOf(text: string): Span[] {
    const words = wordsOf(text);
    const spans: Span[] = [];
    for (let at = 0; at < words.length; ) {
      const span = this.#longestAt(words, at);
      if (span) spans.push(span.found);
      at += span?.words ?? 1;
    }
    return spans;
  }

  #longestAt(words: Word[], at: number): { found: Span; words: number } | undefined {
    for (let count = Math.min(this.#wordsMax, words.length - at); count > 0; count -= 1) {
      const taken = words.slice(at, at + count);
      const alternatives = this.#alternatives.get(keyOf(taken));
      const [first, last] = [taken[0], taken.at(-1)];
      if (alternatives && first && last)
        return { found: { from: first.from, to: last.to, alternatives }, words: count };
    }
    return undefined;
  }
}

function alternative(node: MatchNode, text: string): PlanNode {
  if (wordsOf(text).length === 1) return { ...node, text };
  const { field, analyzer, boost } = node;
  const place = { ...(field === undefined ? {} : { field }), ...(analyzer === undefined ? {} : { analyzer }) };
  return { kind: 'phrase', ...place, text, slop: 0, boost };
}

function readTerms(list: unknown, at: string, min: number): Term[] {
  if (!Array.isArray(list)) throw invalid(at, 'must be an array of terms, or a text such as "tv, television"');
  if (list.length < min) throw invalid(at, `has at least ${min} terms`);
  if (list.length > limits.synonymTermsMax) throw invalid(at, `has at most ${limits.synonymTermsMax} terms`);
  return list.map((term: unknown) => {
    if (typeof term !== 'string') throw invalid(at, 'has a term that is not a string');
    if (term.length > termCharsMax) throw invalid(at, `has a term of more than ${termCharsMax} characters`);
    const words = wordsOf(term);
    if (words.length === 0) throw invalid(at, 'has a term without a word');
    if (words.length > limits.synonymWordsMax) {
      throw invalid(at, `has a term of more than ${limits.synonymWordsMax} words`);
    }
    return { text: term.trim(), words: words.length, key: keyOf(words) };
  });
}

function wordsOf(text: string): Word[] {
  return [...text.matchAll(/[\p{L}\p{M}\p{N}]+/gu)].map((found) => ({
    text: found[0].toLowerCase(),
    from: found.index,
    to: found.index + found[0].length,
  }));
}

function keyOf(words: Word[]): string {
  return words.map((word) => word.text).join(' ');
}

function invalid(at: string, what: string): ServiceError {
  return new ServiceError('invalid_schema', `synonyms${at} ${what}`);
}

const compiledSynonyms = new WeakMap<TableSchema, Synonyms>();

/** Reads the synonyms for the queries of a table. Fails with `invalid_schema`. */
export function synonymsOf(schema: TableSchema): Synonyms {
  const known = compiledSynonyms.get(schema);
  if (known) return known;
  const synonyms = new Synonyms(schema.synonyms);
  compiledSynonyms.set(schema, synonyms);
  return synonyms;
}
