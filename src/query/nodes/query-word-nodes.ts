import type { PlanNode } from '../plan/plan-nodes.ts';
import { readFuzziness } from './fuzziness.ts';
import type { NodeScope } from './node-scope.ts';
import { boostOf, optionalField, readFieldValue } from './query-leaf-nodes.ts';
import { asStrings, checkMembers, invalidQuery, type Members, member, readBoost, readField } from './query-members.ts';

const patternCharsMax = 1_000;
const phrasePositionsMax = 64;

/** `*` stands for any characters, `?` for one. */
export function readWildcard(node: Members, { where, budget }: NodeScope): PlanNode {
  budget.spendExpansion();
  return patternNode(node, 'wildcard', where);
}

export function readRegexp(node: Members, { where, budget }: NodeScope): PlanNode {
  budget.spendExpansion();
  return patternNode(node, 'regexp', where);
}

function patternNode(node: Members, kind: 'wildcard' | 'regexp', where: string): PlanNode {
  checkMembers(node, [kind, 'field', 'path', 'boost'], where);
  const { field, value, options } = readFieldValue(node, kind, 'value', where);
  if (typeof value !== 'string' || value === '') {
    throw invalidQuery(where, `"${kind}" must be a string with something in it`);
  }
  if (value.length > patternCharsMax) throw invalidQuery(where, `"${kind}" has at most ${patternCharsMax} characters`);
  return { kind, ...optionalField(field), pattern: value, ...boostOf(options, where) };
}

/** `{"fuzzy": {"field": "word"}}`: as a term with automatic fuzziness. */
export function readFuzzy(node: Members, { where, budget }: NodeScope): PlanNode {
  budget.spendExpansion();
  checkMembers(node, ['fuzzy', 'field', 'path', 'fuzziness', 'prefix_length', 'boost'], where);
  const { field, value, options } = readFieldValue(node, 'fuzzy', 'value', where);
  if (typeof value !== 'string' || value === '') throw invalidQuery(where, '"fuzzy" must be a word');
  const near = readFuzziness(options, where, 'auto') ?? { fuzziness: 0, prefix_length: 0 };
  return { kind: 'fuzzy', ...optionalField(field), value, ...near, ...boostOf(options, where) };
}

/** `{"cidr": "10.0.0.0/8", "field": "ip"}`. */
export function readCidr(node: Members, scope: NodeScope): PlanNode {
  return networkNode(node, 'cidr', scope);
}

/** `{"ip_range": {"ip": "10.0.0.0/8"}}`. */
export function readIpRange(node: Members, scope: NodeScope): PlanNode {
  return networkNode(node, 'ip_range', scope);
}

function networkNode(node: Members, name: string, { where, budget }: NodeScope): PlanNode {
  budget.spendExpansion();
  checkMembers(node, [name, 'field', 'path', 'boost'], where);
  const { field, value, options } = readFieldValue(node, name, 'cidr', where);
  if (field === undefined) throw invalidQuery(where, 'needs a "field"');
  if (typeof value !== 'string') throw invalidQuery(where, `"${name}" must be a network such as "10.0.0.0/8"`);
  return { kind: 'ip_range', field, cidr: value, ...boostOf(options, where) };
}

/** `{"terms": ["a", "b"]}`, tokens one after another, or `{"terms": [["a", "b"], ["c"]]}` with alternatives. */
export function readTermsPhrase(node: Members, { where, budget }: NodeScope): PlanNode {
  checkMembers(node, ['terms', 'field', 'path', 'fuzziness', 'boost'], where);
  const given = member(node, 'terms');
  const at = `${where}.terms`;
  if (!Array.isArray(given) || given.length === 0) throw invalidQuery(at, 'must have at least one word');
  if (given.length > phrasePositionsMax) throw invalidQuery(at, `has at most ${phrasePositionsMax} positions`);
  const terms = given.map((position: unknown, index) => {
    const words =
      typeof position === 'string' ? [position] : asStrings(position, phrasePositionsMax, `${at}[${index}]`);
    if (words.length === 0) throw invalidQuery(`${at}[${index}]`, 'must have at least one word');
    budget.spend(words.length);
    return words;
  });
  const near = readFuzziness(node, where);
  if (near) budget.spendExpansion(terms.flat().length);
  return {
    kind: 'terms_phrase',
    ...optionalField(readField(node, where)),
    terms,
    slop: 0,
    ...(near ? { fuzziness: near.fuzziness } : {}),
    boost: readBoost(node, where),
  };
}
