import { CodePointOffsets } from '../../lib/text/code-points.ts';
import type { Extraction, ExtractionSchema, FoundText } from './extraction-schema.ts';

interface ShownParts {
  /** Give values of structures their score. */
  readonly scores: boolean;
  /** Give values of structures their place, in code points. */
  readonly spans: boolean;
}

/** The findings in a text, in the names of the wire; the parts that its schema asks for. */
export function shownExtraction(
  extraction: Extraction,
  text: string,
  schema: ExtractionSchema,
  parts: ShownParts,
): Record<string, unknown> {
  const offsets = new CodePointOffsets(text);
  const placed = ({ value, score, start, end }: FoundText) => ({
    value,
    ...(parts.scores ? { score } : {}),
    ...(parts.spans && start !== undefined && end !== undefined
      ? { start: offsets.at(start), end: offsets.at(end) }
      : {}),
  });
  const entities = extraction.entities.map(({ label, start, end, score }) => ({
    label,
    text: text.slice(start, end),
    start: offsets.at(start),
    end: offsets.at(end),
    score,
  }));
  const relations = extraction.relations.map(({ type, source, target, score }) => ({
    type,
    source: { entity_index: source },
    target: { entity_index: target },
    score,
  }));
  return {
    ...(schema.entities.length === 0 ? {} : { entities }),
    ...(schema.relations.length === 0 ? {} : { relations }),
    ...(schema.classifications.length === 0 ? {} : { classifications: extraction.classifications }),
    ...(schema.structures.length === 0 ? {} : { structures: shownStructures(extraction, placed) }),
  };
}

export function shownStructures({ structures }: Extraction, show: (found: FoundText) => unknown): object {
  const record = (fields: Readonly<Record<string, FoundText | readonly FoundText[]>>) =>
    Object.fromEntries(
      Object.entries(fields).map(([name, found]) => [name, 'value' in found ? show(found) : found.map(show)]),
    );
  return Object.fromEntries(Object.entries(structures).map(([name, records]) => [name, records.map(record)]));
}
