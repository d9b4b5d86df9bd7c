/** The purpose of an embedding, and the names by which models know it, the most fitting first. */
const prefixNames = {
  RETRIEVAL_QUERY: ['retrieval_query', 'search_query', 'query', 'web_search_query'],
  RETRIEVAL_DOCUMENT: ['retrieval_document', 'search_document', 'document', 'passage'],
  QUESTION_ANSWERING: ['question_answering', 'retrieval_query', 'search_query', 'query'],
  FACT_VERIFICATION: ['fact_verification', 'fact_checking', 'retrieval_query', 'search_query', 'query'],
  CODE_RETRIEVAL_QUERY: ['code_retrieval_query', 'code_retrieval', 'instructionretrieval', 'search_query', 'query'],
  CLASSIFICATION: ['classification'],
  CLUSTERING: ['clustering'],
  SEMANTIC_SIMILARITY: ['semantic_similarity', 'sts', 'similarity'],
} as const;

export type EmbedTask = keyof typeof prefixNames;

/** The other spelling of tasks. */
export const inputTypes = {
  search_query: 'RETRIEVAL_QUERY',
  search_document: 'RETRIEVAL_DOCUMENT',
  query: 'RETRIEVAL_QUERY',
  document: 'RETRIEVAL_DOCUMENT',
  classification: 'CLASSIFICATION',
  clustering: 'CLUSTERING',
} as const satisfies Record<string, EmbedTask>;

/** Where a model's prefix takes the words of the request. */
const instructionPlace = '{instruction}';

/**
 * The prefix of every text. An instruction takes the place of the task's own prefix: inside the prefix called
 * `instruction` where the model has one, else as it is, with a space behind it. A task that the model has no prefix for
 * adds nothing.
 */
export function prefixOf(
  prefixes: Readonly<Record<string, string>>,
  task: EmbedTask | undefined,
  instruction: string | undefined,
): string {
  const byName = new Map(Object.entries(prefixes).map(([name, prefix]) => [folded(name), prefix]));
  if (instruction !== undefined && instruction !== '') {
    const form = byName.get('instruction');
    if (form?.includes(instructionPlace)) return form.replaceAll(instructionPlace, () => instruction);
    return /\s$/.test(instruction) ? instruction : `${instruction} `;
  }
  const names: readonly string[] = task === undefined ? [] : prefixNames[task];
  const known = names.find((name) => byName.has(name));
  return known === undefined ? '' : (byName.get(known) ?? '');
}

function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
}
