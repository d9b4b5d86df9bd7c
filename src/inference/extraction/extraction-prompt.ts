import type { ExtractionSchema, Field } from './extraction-schema.ts';

/** The instructions of a generator; the shape of its answer is enforced besides. */
export function extractionPrompt({ entities, relations, classifications, structures }: ExtractionSchema): string {
  const lines = [
    'Extract information from the text of the user. Copy values from the text word for word. Answer in JSON.',
  ];
  if (entities.length > 0)
    lines.push(`entities: every mention of ${listed(entities)}, each with its label and its text.`);
  for (const { type, source, target } of relations) {
    const ends =
      source === undefined && target === undefined ? '' : ` from ${source ?? 'anything'} to ${target ?? 'anything'}`;
    lines.push(`relations: "${type}"${ends}, with the texts of both entities as source and target.`);
  }
  for (const { name, labels, multiLabel } of classifications) {
    lines.push(`classifications: "${name}" is ${multiLabel ? 'every one that fits' : 'one'} of ${listed(labels)}.`);
  }
  for (const { name, fields } of structures) {
    lines.push(`structures: for every "${name}" a record of ${fields.map(fieldText).join(', ')}.`);
  }
  return lines.join('\n');
}

function listed(words: readonly string[]): string {
  return words.map((word) => `"${word}"`).join(', ');
}

function fieldText({ name, list, description, choices }: Field): string {
  const kind = `${description === undefined ? '' : ` (${description})`}${list ? ' (a list)' : ''}`;
  return `"${name}"${kind}${choices === undefined ? '' : ` (of ${listed(choices)})`}`;
}
