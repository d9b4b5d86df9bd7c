import type { Session } from './session.ts';
import type { StagedKey } from './staged-writes.ts';

/**
 * The body of the commit request that a session amounts to. The same session gives the same bytes, so that a repetition is
 * known by its `Idempotency-Key`.
 */
export function commitBody(session: Session): Uint8Array {
  const parts: (string | Uint8Array)[] = [
    `{"read_set":${JSON.stringify(session.reads)},"sync_level":"${session.syncLevel}","tables":{`,
  ];
  let isFirst = true;
  for (const [table, keys] of session.writes.all()) {
    parts.push(`${isFirst ? '' : ','}${JSON.stringify(table)}:`);
    pushBatch(parts, keys);
    isFirst = false;
  }
  parts.push('}}');
  return Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)));
}

/** Delete, `base`, then transforms: the order in which the commit applies what it has for a key. */
function pushBatch(parts: (string | Uint8Array)[], keys: ReadonlyMap<string, StagedKey>): void {
  const entries = [...keys];
  const puts = entries.flatMap(([key, { base }]) => (base ? [[`${JSON.stringify(key)}:`, base]] : []));
  const deletes = entries.flatMap(([key, { base, isNew }]) => (base === null || isNew ? [[JSON.stringify(key)]] : []));
  const transforms = entries.flatMap(([key, staged]) =>
    staged.transforms.map(({ operations, upsert }) => [
      `{"key":${JSON.stringify(key)},"upsert":${upsert},"operations":`,
      operations,
      '}',
    ]),
  );
  parts.push('{"inserts":{', ...separated(puts), '},"deletes":[', ...separated(deletes));
  parts.push('],"transforms":[', ...separated(transforms), ']}');
}

function separated(items: (string | Uint8Array)[][]): (string | Uint8Array)[] {
  return items.flatMap((item, at) => (at === 0 ? item : [',', ...item]));
}
