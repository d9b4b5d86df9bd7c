import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { PlanNode } from '../plan/plan-nodes.ts';
import type { NodeScope } from './node-scope.ts';
import { invalidQuery, isObject, type Members, member } from './query-members.ts';

const namedFiltersMax = 64;

type ReadNode = (value: unknown, scope: NodeScope) => PlanNode;

/**
 * The filters that a request names in `with` and means by `{"ref": name}`. A reference is read again wherever it
 * stands, so it takes as much of the request's budget as if it were written there.
 */
export class NamedFilters {
  readonly #definitions: Members;
  /** Of the definitions that were read, as JSON. */
  readonly #chars = new Map<string, number>();
  readonly #read: ReadNode;
  readonly #open = new Set<string>();
  readonly #used = new Set<string>();

  constructor(definitions: unknown, read: ReadNode) {
    if (definitions !== undefined && !isObject(definitions)) {
      throw invalidQuery('with', 'must be an object from names to filters');
    }
    this.#definitions = definitions ?? {};
    this.#read = read;
    if (Object.keys(this.#definitions).length > namedFiltersMax) {
      throw new ServiceError('limit_exceeded', `with: has at most ${namedFiltersMax} filters`);
    }
  }

  resolve(name: string, scope: NodeScope): PlanNode {
    const definition = member(this.#definitions, name);
    if (definition === undefined) {
      const guess = suggestion(name, Object.keys(this.#definitions));
      throw invalidQuery(scope.where, `"with" has no filter "${name.slice(0, 64)}".${guess}`);
    }
    if (this.#open.has(name)) throw invalidQuery(scope.where, `the filter "${name.slice(0, 64)}" refers to itself`);
    const chars = this.#chars.get(name) ?? JSON.stringify(definition).length;
    this.#chars.set(name, chars);
    scope.budget.spendReference(chars);
    this.#open.add(name);
    this.#used.add(name);
    try {
      return this.#read(definition, { ...scope, where: `with.${name.slice(0, 64)}`, depth: scope.depth + 1 });
    } finally {
      this.#open.delete(name);
    }
  }

  /** Reads what no reference has reached, so that a mistake there is told as well. */
  checkUnused(scope: NodeScope): void {
    for (const name of Object.keys(this.#definitions)) {
      if (!this.#used.has(name) && member(this.#definitions, name) !== undefined) this.resolve(name, scope);
    }
  }
}
