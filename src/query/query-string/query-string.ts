import { checkNesting, type QueryBudget } from '../nodes/query-budget.ts';
import { allOf, anyOf, boolNode, matchAll, type PlanNode, type RangeBounds, withBoost } from '../plan/plan-nodes.ts';
import { QueryStringText, type QueryWord, type QuotedOrBare } from './query-string-text.ts';

interface QueryStringOptions {
  /** How neighbouring words combine when the string does not say it. */
  defaultOperator: 'and' | 'or';
  /** Field of words that name none; without it the engine chooses. */
  field?: string | undefined;
  budget: QueryBudget;
  /** Path of the string in the request, for messages. */
  where: string;
  /** Nodes around the string. */
  depth: number;
}

/** `+a`, `-a`, `NOT a`, or none of them. */
type Occurrence = 'plain' | 'required' | 'excluded' | 'negated';
interface Clause {
  node: PlanNode;
  occurrence: Occurrence;
}
/** The clauses between two ORs, which must all hold. */
interface Alternative {
  clauses: Clause[];
  /** Whether an OR that the user wrote stands beside it. */
  beside: boolean;
}

/** Most moves that the words of a phrase may need. */
export const phraseSlopMax = 100;

/**
 * The plan of a query string. NOT (`!`) binds closer than AND (`&&`), AND closer than OR (`||`); `+` and `-` count for the
 * whole group that they stand in. An empty string matches everything. Fails with `invalid_query` or
 * `limit_exceeded`.
 */
export function parseQueryString(text: string, options: QueryStringOptions): PlanNode {
  return new QueryStringParser(new QueryStringText(text, options.where), options).parse();
}

class QueryStringParser {
  readonly #text: QueryStringText;
  readonly #options: QueryStringOptions;

  constructor(text: QueryStringText, options: QueryStringOptions) {
    this.#text = text;
    this.#options = options;
  }

  parse(): PlanNode {
    this.#text.skipSpace();
    if (this.#text.atEnd) return matchAll;
    const node = this.#readGroup(this.#options.field, this.#options.depth);
    if (!this.#text.atEnd) throw this.#text.error('a parenthesis is closed and was never opened');
    return node;
  }

  /** Reads alternatives up to the end or a closing parenthesis, which stays. */
  #readGroup(field: string | undefined, depth: number): PlanNode {
    checkNesting(depth);
    const adjacentIsAnd = this.#options.defaultOperator === 'and';
    let current: Alternative = { clauses: [this.#readClause(field, depth)], beside: false };
    const alternatives = [current];
    for (;;) {
      this.#text.skipSpace();
      if (this.#text.atEnd || this.#text.peek() === ')') break;
      const operator = this.#text.operator();
      if (operator === 'AND' || operator === 'OR') this.#text.takeOperator();
      const isAnd = operator === 'AND' || (operator !== 'OR' && adjacentIsAnd);
      if (!isAnd) {
        current.beside ||= operator === 'OR';
        current = { clauses: [], beside: operator === 'OR' };
        alternatives.push(current);
      }
      current.clauses.push(this.#readClause(field, depth));
    }
    return combineAlternatives(alternatives);
  }

  #readClause(field: string | undefined, depth: number): Clause {
    let negated = false;
    this.#text.skipSpace();
    while (this.#text.takeNegation()) {
      negated = !negated;
      this.#text.skipSpace();
    }
    const operator = this.#text.operator();
    if (operator) throw this.#text.error(`${operator} needs something before it`);
    if (this.#text.atEnd || this.#text.peek() === ')') throw this.#text.error('a word or a group is missing');
    const sign = this.#takeSign();
    const node = this.#readPrimary(field, depth);
    if (sign === '-') return { node, occurrence: negated ? 'plain' : 'excluded' };
    if (negated) return { node, occurrence: 'negated' };
    return { node, occurrence: sign === '+' ? 'required' : 'plain' };
  }

  #takeSign(): '+' | '-' | undefined {
    const char = this.#text.peek();
    if (char !== '+' && char !== '-') return undefined;
    if (!this.#text.isBeforeSomething()) return undefined;
    this.#text.position += 1;
    return char;
  }

  #readPrimary(field: string | undefined, depth: number): PlanNode {
    const char = this.#text.peek();
    if (char === '(' || char === '"') return this.#readValue(field, depth);
    if (field !== undefined && this.#text.needsField()) return this.#readValue(field, depth);
    if (char === '[' || char === '{') throw this.#text.error('a range needs a field in front, as in year:[1 TO 9]');
    if (char === '~' && !this.#text.endsWord(1)) return this.#readTildeWord(field);
    const start = this.#text.position;
    const name = this.#text.readWord(true);
    if (this.#text.peek() !== ':' || this.#text.position === start) {
      this.#text.position = start;
      return this.#readWordValue(field);
    }
    if (name.wildcards > 0) throw this.#text.error('a field name has no wildcards', start);
    this.#text.take(':');
    this.#text.skipSpace();
    if (this.#text.atEnd || this.#text.peek() === ')') throw this.#text.error(`the field "${name.text}" has no value`);
    return this.#readValue(name.text, depth);
  }

  #readValue(field: string | undefined, depth: number): PlanNode {
    if (this.#text.peek() === '(') return this.#readParentheses(field, depth);
    if (this.#text.take('"')) return this.#readPhrase(field);
    if (field === undefined) return this.#readWordValue(field);
    if (this.#text.peek() === '[' || this.#text.peek() === '{') return this.#readClosedRange(field);
    if (this.#text.peek() === '>' || this.#text.peek() === '<') return this.#readOpenRange(field);
    if (this.#text.peek() === '~' && !this.#text.endsWord(1)) return this.#readTildeWord(field);
    if (this.#text.startsExpression()) return this.#readExpression(field);
    return this.#readWordValue(field);
  }

  #readParentheses(field: string | undefined, depth: number): PlanNode {
    const opening = this.#text.position;
    this.#text.take('(');
    this.#options.budget.spend();
    const node = this.#readGroup(field, depth + 1);
    if (!this.#text.take(')')) throw this.#text.error('a parenthesis is opened and never closed', opening);
    return withBoost(node, this.#readBoost());
  }

  #readPhrase(field: string | undefined): PlanNode {
    const text = this.#text.readQuoted();
    let slop = 0;
    if (this.#text.take('~')) {
      const moves = this.#text.readNumber(false);
      if (moves === undefined) throw this.#text.error('~ after a phrase needs a number, as in "a b"~3');
      if (moves > phraseSlopMax) throw this.#text.error(`the slop of a phrase is at most ${phraseSlopMax}`);
      slop = moves;
    }
    this.#options.budget.spend();
    return { kind: 'phrase', ...(field === undefined ? {} : { field }), text, slop, boost: this.#readBoost() };
  }

  #readWordValue(field: string | undefined): PlanNode {
    const word = this.#text.readWord(false);
    if (this.#text.peek() === '~') return this.#readFuzzyWord(field, word);
    const boost = this.#readBoost();
    this.#options.budget.spend();
    const at = field === undefined ? {} : { field };
    if (word.wildcards === 0) {
      return { kind: 'match', ...at, text: word.text, operator: this.#options.defaultOperator, boost };
    }
    if (word.isPrefix && word.text !== '*') return { kind: 'prefix', ...at, value: word.text.slice(0, -1), boost };
    if (/[^*]/.test(word.pattern)) {
      this.#options.budget.spendExpansion();
      return { kind: 'wildcard', ...at, pattern: word.pattern, boost };
    }
    return field === undefined ? withBoost(matchAll, boost) : { kind: 'exists', field, boost };
  }

  /** `~word`. */
  #readTildeWord(field: string | undefined): PlanNode {
    this.#text.take('~');
    return this.#readFuzzyWord(field, this.#text.readWord(false));
  }

  /** Reads the suffix of a word that may be misspelt: `~`, `~2`, or nothing after `~word`. */
  #readFuzzyWord(field: string | undefined, word: QueryWord): PlanNode {
    if (word.wildcards > 0 || word.text === '') throw this.#text.error('~ needs a word without wildcards');
    const edits = this.#text.take('~') ? this.#text.readNumber(true) : undefined;
    if (edits !== undefined && ![0, 1, 2].includes(edits)) throw this.#text.error('~ after a word takes 0, 1 or 2');
    const boost = this.#readBoost();
    this.#options.budget.spend();
    this.#options.budget.spendExpansion();
    const at = field === undefined ? {} : { field };
    return { kind: 'fuzzy', ...at, value: word.text, fuzziness: edits ?? 'auto', prefix_length: 0, boost };
  }

  /** `/so[ua]p/`. */
  #readExpression(field: string): PlanNode {
    const pattern = this.#text.readExpression();
    this.#options.budget.spend();
    this.#options.budget.spendExpansion();
    return { kind: 'regexp', field, pattern, boost: this.#readBoost() };
  }

  /** `>20`, `>=20`, `<"2020-01-01"`. */
  #readOpenRange(field: string): PlanNode {
    const isMin = this.#text.peek() === '>';
    this.#text.position += 1;
    const inclusive = this.#text.take('=');
    this.#text.skipSpace();
    const bound = this.#text.readBound('()^"');
    if (bound.text === '' && !bound.quoted) throw this.#text.error('a comparison needs a value');
    const name = isMin ? (inclusive ? 'gte' : 'gt') : inclusive ? 'lte' : 'lt';
    return this.#rangeNode(field, { [name]: isNumberText(bound) ? Number(bound.text) : bound.text });
  }

  /** `[1 TO 9]`, `{1 TO 9}`, `[1 TO *}`. */
  #readClosedRange(field: string): PlanNode {
    const opening = this.#text.position;
    const includesMin = this.#text.peek() === '[';
    this.#text.position += 1;
    const min = this.#readRangeBound(opening);
    this.#text.skipSpace();
    if (!this.#text.take('TO')) throw this.#text.error('a range is written as [1 TO 9]', opening);
    const max = this.#readRangeBound(opening);
    this.#text.skipSpace();
    const includesMax = this.#text.peek() === ']';
    if (!this.#text.take(']') && !this.#text.take('}')) {
      throw this.#text.error('a range is opened and never closed', opening);
    }
    const given = [min, max].filter((bound) => bound !== undefined);
    const asNumbers = given.every(isNumberText);
    const value = (bound: QuotedOrBare) => (asNumbers ? Number(bound.text) : bound.text);
    const bounds: RangeBounds = {};
    if (min) bounds[includesMin ? 'gte' : 'gt'] = value(min);
    if (max) bounds[includesMax ? 'lte' : 'lt'] = value(max);
    if (given.length > 0) return this.#rangeNode(field, bounds);
    this.#options.budget.spend();
    return { kind: 'exists', field, boost: this.#readBoost() };
  }

  /** Undefined for `*`. */
  #readRangeBound(opening: number): QuotedOrBare | undefined {
    this.#text.skipSpace();
    const bound = this.#text.readBound(']}');
    if (bound.text === '' && !bound.quoted) throw this.#text.error('a range is written as [1 TO 9]', opening);
    return bound.text === '*' && !bound.quoted ? undefined : bound;
  }

  #rangeNode(field: string, bounds: RangeBounds): PlanNode {
    this.#options.budget.spend();
    return { kind: 'range', field, ...bounds, of: 'auto', boost: this.#readBoost() };
  }

  #readBoost(): number {
    if (!this.#text.take('^')) return 1;
    const boost = this.#text.readNumber(true);
    if (boost === undefined || !this.#text.endsWord()) throw this.#text.error('^ needs a number, as in soup^2');
    return boost;
  }
}

function combineAlternatives(alternatives: Alternative[]): PlanNode {
  const [only] = alternatives;
  if (only && alternatives.length === 1) return combineClauses(only.clauses);
  const must: PlanNode[] = [];
  const should: PlanNode[] = [];
  const mustNot: PlanNode[] = [];
  for (const { clauses, beside } of alternatives) {
    const occurrence = clauses.length === 1 ? clauses[0]?.occurrence : 'plain';
    if (occurrence === 'required') must.push(...clauses.map((clause) => clause.node));
    else if (occurrence === 'excluded' || (occurrence === 'negated' && !beside)) {
      mustNot.push(...clauses.map((clause) => clause.node));
    } else should.push(combineClauses(clauses));
  }
  if (must.length === 0 && mustNot.length === 0) return anyOf(should);
  const optional = should.length === 0 ? {} : { min_should: must.length === 0 ? 1 : 0 };
  return boolNode({ must, should, must_not: mustNot, ...optional });
}

function combineClauses(clauses: Clause[]): PlanNode {
  const must = clauses.filter(({ occurrence }) => occurrence === 'plain' || occurrence === 'required');
  const mustNot = clauses.filter(({ occurrence }) => occurrence === 'excluded' || occurrence === 'negated');
  if (mustNot.length === 0) return allOf(must.map((clause) => clause.node));
  return boolNode({ must: must.map((clause) => clause.node), must_not: mustNot.map((clause) => clause.node) });
}

/** Whether a bound is written as JSON writes numbers; `007` and what stands in quotes are not numbers. */
function isNumberText({ text, quoted }: QuotedOrBare): boolean {
  if (quoted || text.length > 32) return false;
  return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(text) && Number.isFinite(Number(text));
}
