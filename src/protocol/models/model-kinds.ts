/** The task of a model; each kind is a directory below the models directory and a catalogue of the models answer. */
export const modelKinds = [
  'chunkers',
  'rerankers',
  'embedders',
  'extractors',
  'generators',
  'rewriters',
  'readers',
  'transcribers',
] as const;

export type ModelKind = (typeof modelKinds)[number];

export function isModelKind(word: unknown): word is ModelKind {
  return modelKinds.some((kind) => kind === word);
}

const segment = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** `name` or `owner/name`: letters, digits, `.`, `_` and `-`, beginning with a letter or digit. */
export function isModelName(name: string): boolean {
  const segments = name.split('/');
  return segments.length <= 2 && segments.every((each) => segment.test(each) && !each.includes('..'));
}
