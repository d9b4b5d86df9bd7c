import type { IndexDefinition } from '../../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../../index-kinds/configuration/artifact-config.ts';
import type { FeedConsumers } from '../feed-consumers.ts';
import { textArtifactsOf } from '../followed-index.ts';
import type { OpenArtifactProducer, PartProducer, ProducedRange, ProductionReport } from './part-producer.ts';

interface FollowedArtifact {
  readonly definition: ArtifactDefinition;
  /** The members of the definition that the producer was opened by. */
  readonly identity: string;
  readonly producer: PartProducer;
  /** Lets the feed forget what this enrichment alone needs. */
  leaveFeed(): void;
}

/** One enrichment of one range, as it stands now. */
export interface RangeArtifactReport extends ProductionReport {
  readonly name: string;
  /** Last committed sequence of the range. */
  readonly head: number;
  readonly isComplete: boolean;
}

/** The enrichments of a table, at work in one range. An artifact that is made from another comes behind it. */
export class RangeArtifacts {
  readonly #range: ProducedRange;
  readonly #open: OpenArtifactProducer | undefined;
  readonly #consumers: FeedConsumers;
  #definitions: readonly ArtifactDefinition[] = [];
  #followed: FollowedArtifact[] = [];

  constructor(range: ProducedRange, consumers: FeedConsumers, open: OpenArtifactProducer | undefined) {
    this.#range = range;
    this.#consumers = consumers;
    this.#open = open;
  }

  /** Those that the index holds the text of. */
  textsOf(index: IndexDefinition): readonly ArtifactDefinition[] {
    return textArtifactsOf(index, this.#definitions);
  }

  get isAtRest(): boolean {
    return this.#followed.every(({ producer }) => producer.isAtRest);
  }

  /** From now on these are made, each behind the one that it is made from. One that has not changed goes on. */
  async set(definitions: readonly ArtifactDefinition[]): Promise<void> {
    const identities = new Set(definitions.map(identityOf));
    const gone = this.#followed.filter(({ identity }) => !identities.has(identity));
    for (const { leaveFeed } of gone) leaveFeed();
    await Promise.all(gone.map(({ producer }) => producer.close()));
    const kept = new Map(this.#followed.map((each) => [each.identity, each]));
    this.#followed = [];
    this.start(definitions, kept);
  }

  /** As `set`, where nothing was made before. */
  start(definitions: readonly ArtifactDefinition[], kept: ReadonlyMap<string, FollowedArtifact> = new Map()): void {
    this.#definitions = definitions;
    if (!this.#open) return;
    for (const definition of definitions) {
      this.#followed.push(kept.get(identityOf(definition)) ?? this.#follow(definition, this.#open));
    }
  }

  #follow(definition: ArtifactDefinition, open: OpenArtifactProducer): FollowedArtifact {
    const producer = open(this.#range, definition);
    // That a source is gone is told by the feed alone.
    const neededAfter = () => producer.report().liveThrough;
    const leaveFeed = definition.source === undefined ? () => {} : this.#consumers.add({ neededAfter });
    return { definition, identity: identityOf(definition), producer, leaveFeed };
  }

  wake(): void {
    for (const { producer } of this.#followed) producer.wake();
  }

  /** Resolves when the artifacts of documents up to `sequence` are made, but for those from before their enrichment. */
  async waitFor(sequence: number, signal?: AbortSignal): Promise<void> {
    for (const { definition, producer } of this.#followed) {
      // Its source came after the document.
      const through = definition.source === undefined ? sequence : this.#range.head();
      await producer.waitFor(through, signal).catch((error: unknown) => {
        // One that was dropped meanwhile is not waited for.
        if (this.#followed.some((each) => each.producer === producer)) throw error;
      });
    }
  }

  /** Everything before this sequence has all artifacts. */
  get coveredThrough(): number {
    return this.#followed.reduce(
      (lowest, { definition }) => Math.min(lowest, this.#coverage(definition)),
      this.#range.head(),
    );
  }

  /** An artifact is made only where the one that it is made from is. */
  #coverage({ name, source }: ArtifactDefinition): number {
    const covered = this.producer(name)?.report().coveredThrough ?? this.#range.head();
    return source === undefined ? covered : Math.min(covered, this.#coverage(source));
  }

  /** Documents up to this sequence are shown, with these artifacts, by whoever has read the range up to `read`. */
  shownThrough(names: readonly string[], read: number): number {
    return this.#among(names).reduce((lowest, { definition }) => Math.min(lowest, this.#shown(definition, read)), read);
  }

  #among(names: readonly string[]): FollowedArtifact[] {
    return names.length === 0 ? [] : this.#followed.filter(({ definition }) => names.includes(definition.name));
  }

  #shown({ name, source }: ArtifactDefinition, read: number): number {
    const shown = this.producer(name)?.shownThrough(read) ?? read;
    return source === undefined ? shown : this.#shown(source, shown);
  }

  /** A document lacks one of these artifacts because what the artifact would be made from is damaged. */
  lacksDamaged(names: readonly string[]): boolean {
    return this.#among(names).some(({ definition }) => this.#lacksDamaged(definition));
  }

  #lacksDamaged({ name, source }: ArtifactDefinition): boolean {
    return (this.producer(name)?.damaged ?? 0) > 0 || (source !== undefined && this.#lacksDamaged(source));
  }

  reports(names: readonly string[]): RangeArtifactReport[] {
    const head = this.#range.head();
    return this.#among(names).map(({ definition, producer }) => {
      const report = producer.report();
      const coveredThrough = this.#coverage(definition);
      const isComplete = coveredThrough >= head && report.retrying === 0;
      return { ...report, name: definition.name, head, coveredThrough, isComplete };
    });
  }

  /** How far an artifact is, with those that it is made from; undefined where nothing makes it here. */
  reportOf(name: string): ProductionReport | undefined {
    const followed = this.#followed.find(({ definition }) => definition.name === name);
    return followed && { ...followed.producer.report(), coveredThrough: this.#coverage(followed.definition) };
  }

  producer(name: string): PartProducer | undefined {
    return this.#followed.find(({ definition }) => definition.name === name)?.producer;
  }

  failuresWithin(firstSequence: number, lastSequence: number): number {
    return this.#followed.reduce((sum, { producer }) => sum + producer.failuresWithin(firstSequence, lastSequence), 0);
  }

  async close(): Promise<void> {
    for (const { leaveFeed } of this.#followed) leaveFeed();
    await Promise.all(this.#followed.map(({ producer }) => producer.close()));
  }
}

function identityOf({ partId, config, source }: ArtifactDefinition): string {
  return JSON.stringify([partId, config, source?.partId ?? null]);
}
