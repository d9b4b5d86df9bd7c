import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readInteger,
  readStrings,
} from '../nodes/query-members.ts';

/** The marks that the engine sets in the documents of a page; its members are named as they are there. */
export interface HighlightPlan {
  /** Dotted paths; all that the query asks about when empty. */
  fields: string[];
  /** Length of a fragment, in characters. */
  fragment_chars: number;
  /** Most fragments of one field. */
  fragments: number;
  pre_tag: string;
  post_tag: string;
}

const where = 'highlight';
const fieldsMax = 64;
const tagCharsMax = 256;
const fragmentCharsBounds = { min: 20, max: 2_000 };
const fragmentsBounds = { min: 1, max: 20 };

/** The member `highlight` of a request whose page has at most `limit` hits. */
export function readHighlight(request: Members, limit: number): HighlightPlan | undefined {
  const value = member(request, 'highlight');
  if (value === undefined || value === false) return undefined;
  const options = value === true ? {} : value;
  if (!isObject(options)) throw invalidQuery(where, 'must be an object such as {"fields": ["title"]}');
  checkMembers(options, ['fields', 'fragment_chars', 'fragments', 'pre_tag', 'post_tag'], where);
  if (limit > limits.highlightHitsMax) {
    throw new ServiceError('limit_exceeded', `highlight: a page has at most ${limits.highlightHitsMax} hits`);
  }
  return {
    fields: readStrings(options, 'fields', fieldsMax, where) ?? [],
    fragment_chars: readInteger(options, 'fragment_chars', fragmentCharsBounds, where) ?? 150,
    fragments: readInteger(options, 'fragments', fragmentsBounds, where) ?? 3,
    pre_tag: readTag(options, 'pre_tag') ?? '<em>',
    post_tag: readTag(options, 'post_tag') ?? '</em>',
  };
}

function readTag(options: Members, name: string): string | undefined {
  const tag = member(options, name);
  if (tag === undefined || (typeof tag === 'string' && tag.length <= tagCharsMax)) return tag;
  throw invalidQuery(where, `"${name}" must be a string of at most ${tagCharsMax} characters`);
}
