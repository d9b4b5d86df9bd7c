import type { IndexDefinition } from '../index-kinds/all-kinds.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import type { IndexApplier } from './applier/index-applier.ts';
import type { IndexFacts } from './at-rest/range-facts.ts';
import type { RangeArtifacts } from './enrichment/range-artifacts.ts';
import { artifactOf, type FollowedIndex, mayHoldTexts } from './followed-index.ts';
import { joinedProduction, type RangeIndexReport } from './index-report.ts';

/** How far each index of an open range is behind what the range has committed. */
export class IndexStandings {
  readonly #stored: RangeReader;
  readonly #artifacts: RangeArtifacts;
  readonly #indexes: ReadonlyMap<string, FollowedIndex>;
  readonly #head: () => number;

  /** `head`: the last sequence that the range has committed. */
  constructor(
    stored: RangeReader,
    artifacts: RangeArtifacts,
    indexes: ReadonlyMap<string, FollowedIndex>,
    head: () => number,
  ) {
    this.#stored = stored;
    this.#artifacts = artifacts;
    this.#indexes = indexes;
    this.#head = head;
  }

  /** Sequences between this one and the end of the range. */
  lag(sequence: number): number {
    return Math.max(0, this.#head() - Math.max(sequence, this.#stored.info().firstSequence - 1));
  }

  /** Sequence up to which the index shows every row; the end of the range for one that is gone. */
  shown(indexName: string): number {
    const head = this.#head();
    const followed = this.#indexes.get(indexName);
    const published = followed?.applier.progress.published ?? head;
    const shown = followed ? this.#shownWithParts(followed, published) : published;
    return Math.min(head, Math.max(shown, this.#stored.info().firstSequence - 1));
  }

  /** Documents up to this sequence are shown by an index that has read up to `read`, with all that is made of them. */
  #shownWithParts({ definition, producer }: FollowedIndex, read: number): number {
    const artifact = artifactOf(definition);
    const own = producer?.shownThrough(read) ?? read;
    return this.#artifacts.shownThrough(artifact === undefined ? this.#textsOf(definition) : [artifact], own);
  }

  /** The index shows what is stored, as far as it has read. Otherwise something was damaged, or what it would be made from is. */
  isWhole(indexName: string): boolean {
    const followed = this.#indexes.get(indexName);
    if (!followed) return true;
    const { applier, producer, definition } = followed;
    if (!applier.isWhole || (producer?.damaged ?? 0) > 0) return false;
    const artifact = artifactOf(definition);
    return !this.#artifacts.lacksDamaged(artifact === undefined ? this.#textsOf(definition) : [artifact]);
  }

  /** Names of the artifacts that the index holds the text of. */
  #textsOf(definition: IndexDefinition): readonly string[] {
    return this.#artifacts.textsOf(definition).map(({ name }) => name);
  }

  /** As of now. */
  facts(): IndexFacts[] {
    return [...this.#indexes].map(([name, { applier }]) => {
      return { name, lag: this.#head() - this.shown(name), state: stateOf(applier) };
    });
  }

  /** The changes that the next opening of the range has to replay. `states`: before the indexes were closed. */
  factsAtRest(states: ReadonlyMap<string, IndexApplier['state']>): IndexFacts[] {
    // Parts that are not made yet are made after the next opening.
    const artifactsThrough = this.#artifacts.coveredThrough;
    return [...this.#indexes].map(([name, followed]): IndexFacts => {
      const made = mayHoldTexts(followed.definition) ? artifactsThrough : this.#head();
      const covered = this.#productionOf(followed)?.coveredThrough ?? made;
      const lag = this.lag(Math.min(followed.applier.checkpointedSequence, covered));
      return { name, lag, state: states.get(name) === 'failed' ? 'failed' : lag > 0 ? 'behind' : 'live' };
    });
  }

  report(indexName: string): RangeIndexReport | undefined {
    const followed = this.#indexes.get(indexName);
    if (!followed) return undefined;
    const { rangeId } = this.#stored;
    const { firstSequence, documents } = this.#stored.info();
    const { error, ...report } = followed.applier.report();
    const production = this.#productionOf(followed);
    const message = error === undefined ? undefined : error instanceof Error ? error.message : String(error);
    const artifacts = this.#artifacts.reports(this.#textsOf(followed.definition));
    const [head, isWhole] = [this.#head(), this.isWhole(indexName)];
    return { rangeId, head, firstSequence, documents, ...report, isWhole, error: message, production, artifacts };
  }

  /** How far the parts of an index are made, those of its enrichment included. */
  #productionOf(followed: FollowedIndex | undefined) {
    const artifact = followed && artifactOf(followed.definition);
    const own = followed?.producer?.report();
    const made = artifact === undefined ? undefined : this.#artifacts.reportOf(artifact);
    return own && made ? joinedProduction(own, made) : (made ?? own);
  }
}

function stateOf(applier: IndexApplier): IndexFacts['state'] {
  const { state } = applier;
  if (state === 'failed') return 'failed';
  if (state === 'live') return 'live';
  if (applier.isRebuilding) return 'building';
  return state === 'catching_up' ? 'behind' : 'opening';
}
