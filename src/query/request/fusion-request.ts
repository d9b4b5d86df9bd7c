import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readBoolean,
  readInteger,
  readNumber,
  readString,
} from '../nodes/query-members.ts';
import type { PlanFusion, PlanPruner } from '../plan/native-plan.ts';

const strategies = ['rrf', 'rsf', 'failover'] as const;
const defaultRankConstant = 60;
const weightMax = 1e9;

/**
 * Reads `merge_config`: how the answers of the searches called `legs` become one. `window` is how many hits of each
 * are looked at when the request does not say. Fails with `invalid_query` naming the member.
 */
export function readFusion(
  request: Members,
  legs: readonly string[],
  window: number,
): PlanFusion & { weights: ReadonlyMap<string, number> } {
  const at = 'merge_config';
  const config = objectMember(request, at) ?? {};
  checkMembers(config, ['strategy', 'weights', 'rank_constant', 'window_size'], at);
  const named = readString(config, 'strategy', at) ?? 'rrf';
  const strategy = strategies.find((each) => each === named);
  if (!strategy) {
    throw invalidQuery(at, `"strategy" must be one of ${strategies.join(', ')}.${suggestion(named, strategies)}`);
  }
  const rankConstant = readNumber(config, 'rank_constant', { min: 0, max: Number.MAX_VALUE }, at);
  if (rankConstant === 0) throw invalidQuery(at, '"rank_constant" must be above 0');
  return {
    strategy,
    rank_constant: rankConstant ?? defaultRankConstant,
    window: readInteger(config, 'window_size', { min: 1, max: limits.queryLimitMax }, at) ?? window,
    weights: readWeights(config, legs),
  };
}

/** Reads `pruner`: what is cut off the hits by their scores; undefined when nothing is. Fails with `invalid_query`. */
export function readPruner(request: Members): PlanPruner | undefined {
  const at = 'pruner';
  const config = objectMember(request, at);
  if (!config) return undefined;
  const { MAX_VALUE: most } = Number;
  const numbers = {
    min_absolute_score: { min: -most, max: most },
    min_score_ratio: { min: 0, max: 1 },
    std_dev_threshold: { min: 0, max: most },
    max_score_gap_percent: { min: 0, max: 100 },
  } as const;
  checkMembers(config, ['require_multi_index', ...Object.keys(numbers)], at);
  const pruner: PlanPruner = {};
  if (readBoolean(config, 'require_multi_index', at)) pruner.require_multi_index = true;
  for (const [name, bounds] of Object.entries(numbers)) {
    const value = readNumber(config, name, bounds, at);
    if (value !== undefined) pruner[name as keyof typeof numbers] = value;
  }
  return Object.keys(pruner).length === 0 ? undefined : pruner;
}

function readWeights(config: Members, legs: readonly string[]): ReadonlyMap<string, number> {
  const at = 'merge_config.weights';
  const given = member(config, 'weights');
  if (given === undefined) return new Map();
  if (!isObject(given)) throw invalidQuery(at, 'must be an object such as {"full_text": 1, "taste": 2}');
  const weights = new Map<string, number>();
  for (const name of Object.keys(given)) {
    const weight = readNumber(given, name, { min: 0, max: weightMax }, at);
    if (!legs.includes(name)) {
      const known = legs.length === 0 ? 'nothing' : legs.join(', ');
      const shown = name.length > 64 ? `${name.slice(0, 64)}...` : name;
      throw invalidQuery(
        at,
        `"${shown}" is not searched by this request, which searches ${known}.${suggestion(name, legs)}`,
      );
    }
    if (weight !== undefined) weights.set(name, weight);
  }
  return weights;
}

function objectMember(request: Members, name: string): Members | undefined {
  const value = member(request, name);
  if (value === undefined || isObject(value)) return value;
  throw invalidQuery(name, 'must be an object');
}
