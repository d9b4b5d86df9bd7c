import { assert } from '../../lib/assert.ts';
import { readFrame, rowKind } from '../../lib/document-frame.ts';
import { readEdges } from '../../lib/parts/edges-part.ts';
import { partIdOfBody } from '../../lib/parts/part-body.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { GraphRules, RangeId, TreeChange } from '../write-request.ts';

/**
 * The changes of a request to the edges of trees. The writer knows the lists of edges that a request ends with, but not the
 * ancestors of a document, which may lie in any range: whoever sends the request looks at them, and sends it again with the
 * changes that it has found in order, and with assertions on what it has read. A change that nobody has looked at is refused.
 */
export class TreeChanges {
  readonly #changes = new Map<string, TreeChange>();
  #hasNew = false;

  /** Reads the images of one range. */
  read(images: Uint8Array<ArrayBuffer>, rangeId: RangeId, graphs: readonly GraphRules[]): void {
    const trees = graphs.filter(({ treeTypes }) => treeTypes.length > 0);
    if (trees.length === 0) return;
    const frame = readFrame(images);
    for (let row = 0; row < frame.rowCount; row += 1) {
      const kind = frame.kind(row);
      if (kind === rowKind.delete) {
        for (const rules of trees) this.#note(rules, rangeId, frame.key(row), []);
      } else if (kind === rowKind.partPut || kind === rowKind.partDelete) {
        const body = frame.body(row);
        const rules = trees.find(({ partId }) => partId === partIdOfBody(body));
        if (rules) this.#note(rules, rangeId, frame.key(row), kind === rowKind.partPut ? readEdges(body) : []);
      }
    }
  }

  /** Fails with `tree_topology_violation`, its changes among the details, unless these are the changes that were looked at. */
  check(proven: readonly TreeChange[] | undefined): void {
    if (!this.#hasNew) return;
    const changes = [...this.#changes.values()];
    if (proven !== undefined && Bun.deepEquals(changes, proven)) return;
    throw new ServiceError('tree_topology_violation', 'the ancestors of a document have changed meanwhile', {
      details: { [unprovenDetail]: changes },
    });
  }

  #note(rules: GraphRules, rangeId: RangeId, key: string, edges: ReturnType<typeof readEdges>): void {
    for (const type of rules.treeTypes) {
      const targets = edges.flatMap((edge) => (edge.type === type ? [{ key: edge.target, since: edge.since }] : []));
      this.#hasNew ||= targets.some(({ since }) => since === 0);
      this.#changes.set(`${rangeId} ${rules.partId} ${type} ${key}`, {
        rangeId,
        partId: rules.partId,
        type,
        source: key,
        targets,
      });
    }
  }
}

const unprovenDetail = 'tree_changes';

/** The changes that the writer wants looked at; undefined for another error. */
export function unprovenChanges(error: unknown): TreeChange[] | undefined {
  if (!(error instanceof ServiceError) || error.code !== 'tree_topology_violation') return undefined;
  const changes = error.details?.[unprovenDetail];
  assert(Array.isArray(changes), 'a refusal of a tree without its changes');
  return changes as TreeChange[];
}
