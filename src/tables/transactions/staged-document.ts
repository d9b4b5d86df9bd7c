import { memberTexts, withoutMember } from '../../lib/text/json-text.ts';
import { documentJson } from '../../storage/evaluation/transform-document.ts';
import { applyOperations, type TransformOperation } from '../../storage/evaluation/transforms.ts';
import { besideMembers, type StagedKey } from './staged-writes.ts';

const decoder = new TextDecoder();

/** The document that a commit would make of the stored one; undefined when there is none. */
export function documentAsStaged(
  stored: string | undefined,
  { base, transforms }: StagedKey,
  timestamp: string,
): string | undefined {
  const start = base === undefined ? stored : base === null ? undefined : shownText(decoder.decode(base));
  let document: Record<string, unknown> | undefined = start === undefined ? undefined : JSON.parse(start);
  let isChanged = false;
  for (const { operations, upsert } of transforms) {
    if (!document && !upsert) continue;
    const changed: Record<string, unknown> = document ?? {};
    const list = JSON.parse(decoder.decode(operations)) as TransformOperation[];
    const { applied, unfit } = applyOperations(changed, list, timestamp);
    // As in the commit: what changes nothing leaves the text, and makes no document.
    if (applied === 0 && unfit > 0) continue;
    isChanged ||= !document || list.length > 0;
    document = changed;
  }
  return isChanged ? documentJson(document) : start;
}

/** The document as it will be stored: vectors and edges are kept beside it. */
function shownText(document: string): string {
  const members = memberTexts(document);
  const beside = besideMembers.filter((name) => members.has(name));
  return beside.reduce(withoutMember, document);
}
