import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { type ProviderConfig, readProviderConfig } from '../../provider-config/provider-config.ts';
import { invalidQuery, isObject, type Members, member, readInteger, readString } from '../nodes/query-members.ts';
import type { PlanNode } from '../plan/plan-nodes.ts';
import type { RequestedPage } from './query-page.ts';
import { refuseOrder } from './query-page.ts';

/** How the hits of a search are scored once more, by a model that reads the query beside each document. */
export interface RerankPlan {
  config: ProviderConfig;
  /** The text or images that the documents are compared with. */
  query: string;
  /** The text that is compared: the text at a dotted path, or what a template makes of it. */
  source: { field: string } | { template: string };
  /** Hits that are left. */
  topN: number;
  /** Best hits of the search that are scored. */
  candidates: number;
}

interface RerankedSearch {
  page: RequestedPage;
  semanticText: string | undefined;
  /** The scoring query, before synonyms. */
  scored: PlanNode | undefined;
}

const where = 'reranker';
const ownMembers = ['field', 'template', 'top_n'];

/** Reads `reranker`; undefined when there is none. Fails with `invalid_query`, `invalid_request` or `unknown_provider`. */
export function readReranker(request: Members, { page, semanticText, scored }: RerankedSearch): RerankPlan | undefined {
  const members = member(request, 'reranker');
  if (members === undefined) return undefined;
  if (!isObject(members)) throw invalidQuery(where, 'must be an object such as {"provider", "model", "field"}');
  const config = readProviderConfig(members, 'rerank', where, ownMembers);
  refuseOrder(request, { ...page, offset: 0 }, where);
  const query = semanticText ?? wordsOf(request, scored);
  if (query === '') {
    throw invalidQuery(where, 'has nothing to compare documents with: give "semantic_search" or "full_text_search"');
  }
  const topN = readInteger(members, 'top_n', { min: 1, max: limits.queryLimitMax }, where) ?? limits.queryLimitMax;
  return { config, query, source: readSource(members), topN, candidates: candidatesOf(request, page) };
}

function readSource(members: Members): RerankPlan['source'] {
  const field = readString(members, 'field', where);
  const template = readString(members, 'template', where);
  if (template) return { template };
  if (field) return { field: field.startsWith('$.') ? field.slice(2) : field };
  throw invalidQuery(where, 'needs a "field", the path of the text that is compared with the query, or a "template"');
}

/** As many as the page needs, or as `merge_config` says. */
function candidatesOf(request: Members, { limit, offset }: RequestedPage): number {
  const config = member(request, 'merge_config');
  const window = isObject(config) ? member(config, 'window_size') : undefined;
  const candidates = Math.max(limit + offset, typeof window === 'number' ? window : 0);
  if (candidates <= limits.rerankHitsMax) return limit === 0 ? 0 : candidates;
  const message = `${where}: at most ${limits.rerankHitsMax} hits are reranked; lower "limit" or "window_size"`;
  throw new ServiceError('limit_exceeded', message);
}

/** The words that a request scores by: the query string as it was written, or those of its nodes. */
function wordsOf(request: Members, scored: PlanNode | undefined): string {
  const node = member(request, 'full_text_search') ?? member(request, 'query');
  const text = isObject(node) ? member(node, 'query') : undefined;
  if (typeof text === 'string') return text.trim();
  return scored === undefined ? '' : scoredWords(scored).join(' ').trim();
}

function scoredWords(node: PlanNode): string[] {
  switch (node.kind) {
    case 'bool':
      return [...node.must, ...node.should].flatMap(scoredWords);
    case 'match':
    case 'phrase':
    case 'bool_prefix':
      return [node.text];
    case 'term':
    case 'prefix':
    case 'fuzzy':
      return [String(node.value)];
    case 'terms_phrase':
      return node.terms.map(([first = '']) => first);
    default:
      return [];
  }
}
