import { documentJson } from '../../storage/evaluation/transform-document.ts';
import { applyOperations, type TransformOperation } from '../../storage/evaluation/transforms.ts';
import type { StagedKey } from './staged-writes.ts';

const decoder = new TextDecoder();

/** The document that a commit would make of the stored one; undefined when there is none. */
export function documentAsStaged(
  stored: string | undefined,
  { base, transforms }: StagedKey,
  timestamp: string,
): string | undefined {
  const start = base === undefined ? stored : base === null ? undefined : decoder.decode(base);
  return transforms.reduce((json, { operations, upsert }) => {
    if (json === undefined && !upsert) return undefined;
    const document = JSON.parse(json ?? '{}') as Record<string, unknown>;
    const list = JSON.parse(decoder.decode(operations)) as TransformOperation[];
    const { applied, unfit } = applyOperations(document, list, timestamp);
    // As in the commit: what changes nothing leaves the text, and makes no document.
    if (applied === 0 && unfit > 0) return json;
    return json !== undefined && list.length === 0 ? json : documentJson(document);
  }, start);
}
