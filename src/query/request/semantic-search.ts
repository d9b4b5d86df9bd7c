import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { invalidQuery, type Members, member, readString } from '../nodes/query-members.ts';

const where = 'query request';

/** A text to search by, and the template that makes of it what is embedded. */
export interface SemanticText {
  text: string;
  template: string | undefined;
}

/**
 * The text of a request that searches by meaning; undefined when there is none. Fails with `invalid_query` naming the
 * member, also where no index of the table can embed it.
 */
export function readSemanticText(request: Members, embedders: ReadonlySet<string>): SemanticText | undefined {
  const text = readString(request, 'semantic_search', where);
  const template = readString(request, 'embedding_template', where);
  if (text === undefined && template === undefined) return undefined;
  const name = text === undefined ? 'embedding_template' : 'semantic_search';
  if (embedders.size === 0) {
    throw invalidQuery(
      where,
      `"${name}" needs an index with an embedder, and no index of the table has one: ` +
        'make the vector yourself and give it in "embeddings"',
    );
  }
  if (text === undefined) throw invalidQuery(where, '"embedding_template" needs a "semantic_search" to render');
  if (text.trim() === '') throw invalidQuery(where, '"semantic_search" is empty: give the words to search for');
  const most = limits.queryTextCharsMax;
  if (text.length > most || (template ?? '').length > most) {
    const long = text.length > most ? 'semantic_search' : 'embedding_template';
    throw new ServiceError('limit_exceeded', `"${long}" may have ${most} characters at most`);
  }
  return { text, template };
}

/** The indexes that a text alone searches: those that `indexes` names, or the only one that has an embedder. */
export function onlyEmbedder(request: Members, embedders: ReadonlySet<string>): string {
  const [only, ...others] = embedders;
  if (only !== undefined && others.length === 0) return only;
  const name = member(request, 'embeddings') === undefined ? '' : ' for the text';
  throw invalidQuery(
    where,
    `"semantic_search" needs "indexes"${name}: the table has ${embedders.size} indexes with an embedder, ${[...embedders].join(', ')}`,
  );
}
