import { type IndexDefinition, isKeptByText, partIdOf } from '../index-kinds/all-kinds.ts';
import type { ArtifactDefinition } from '../index-kinds/configuration/artifact-config.ts';
import { bytesBelow } from '../storage/directory/disk-usage.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import type { EntryListener, WriteCounts } from '../storage/write-request.ts';
import { IndexApplier } from './applier/index-applier.ts';
import type { RangeFacts } from './at-rest/range-facts.ts';
import { JoinedFeed } from './enrichment/joined-feed.ts';
import type { PartProducer } from './enrichment/part-producer.ts';
import { RangeArtifacts } from './enrichment/range-artifacts.ts';
import { FeedConsumers, type FeedPin } from './feed-consumers.ts';
import { artifactOf, type FollowedIndex, hasAllDocuments } from './followed-index.ts';
import { concerns, contentsOf } from './frame-contents.ts';
import type { RangeIndexReport } from './index-report.ts';
import { IndexStandings } from './index-standings.ts';
import type { IndexedRangeDeps } from './indexed-range-deps.ts';
import type { IndexLinks } from './range-index.ts';
import { RemovalLog } from './removals/removal-log.ts';
import { RangeRemovedTargets } from './removals/removed-targets.ts';

/** A range with its documents and the appliers that keep its indexes up to date. */
export class IndexedRange {
  readonly stored: RangeReader;
  readonly artifacts: RangeArtifacts;
  readonly #deps: IndexedRangeDeps;
  readonly #indexes = new Map<string, FollowedIndex>();
  readonly #consumers = new FeedConsumers();
  readonly #removals: RemovalLog;
  readonly #feed: JoinedFeed;
  readonly #standings: IndexStandings;
  /** Documents of this range that are gone, and that edges may still lead to. */
  readonly removedTargets: RangeRemovedTargets;
  readonly #unsubscribe: () => void;
  /** The parts that indexes are built from. */
  #followedParts: ReadonlySet<number> = new Set();
  #head: number;
  /** Purges of the feed that are under way. */
  #purges = 0;
  /** Nothing may be written to the documents' file any more. */
  #isPrepared = false;
  /** States of the indexes before they were settled. */
  #lastStates: ReadonlyMap<string, IndexApplier['state']> | undefined;

  /** `artifacts`: each behind the one that it is made from. */
  constructor(deps: IndexedRangeDeps, definitions: IndexDefinition[], artifacts: readonly ArtifactDefinition[] = []) {
    this.#deps = deps;
    this.stored = deps.stored;
    this.#head = deps.stored.info().head;
    this.#removals = new RemovalLog(this.#head);
    this.removedTargets = new RangeRemovedTargets(() => this.stored.notes);
    this.#unsubscribe = deps.log.subscribe(this.rangeId, (entry) => this.#take(entry));
    this.artifacts = new RangeArtifacts(this.#produced, this.#consumers, deps.openArtifact);
    this.#feed = new JoinedFeed(this.stored, this.artifacts);
    this.#standings = new IndexStandings(this.stored, this.artifacts, this.#indexes, () => this.#head);
    this.artifacts.start(artifacts);
    for (const definition of definitions) this.addIndex(definition);
  }

  get #produced() {
    return {
      stored: this.stored,
      head: () => this.#head,
      whenKeepsUp: (signal: AbortSignal) => this.whenKeepsUp(signal),
    };
  }

  get rangeId(): number {
    return this.stored.rangeId;
  }

  /** Last sequence that this range has been told of; `stored.committedHead` may be a moment ahead. */
  get head(): number {
    return this.#head;
  }

  applier(indexName: string): IndexApplier | undefined {
    return this.#indexes.get(indexName)?.applier;
  }

  /** Sequence up to which all of these indexes show every row; an index that is gone is not counted. */
  shownBy(indexNames: readonly string[]): number {
    return indexNames.reduce((lowest, name) => Math.min(lowest, this.#standings.shown(name)), this.#head);
  }

  /** As `IndexStandings.isWhole`. */
  isWhole(indexName: string): boolean {
    return this.#standings.isWhole(indexName);
  }

  /** No index has anything to do: closing the range now interrupts nothing. */
  get isAtRest(): boolean {
    for (const { applier, producer } of this.#indexes.values()) {
      if (!applier.isAtRest || producer?.isAtRest === false) return false;
    }
    return this.artifacts.isAtRest;
  }

  /** Bytes that wait for an index, or in it for a commit. */
  get backlogBytes(): number {
    let bytes = 0;
    for (const { applier } of this.#indexes.values()) bytes += applier.backlogBytes;
    return bytes;
  }

  /** Bytes of index files that are in memory and wait for a checkpoint. */
  indexMemoryBytes(): number {
    let bytes = 0;
    for (const { applier } of this.#indexes.values()) bytes += applier.index?.memoryBytes() ?? 0;
    return bytes;
  }

  /** As of now. */
  facts(): RangeFacts {
    const { documents, bytes } = this.stored.info();
    return { head: this.#head, documents, bytes, diskBytes: this.diskBytes(), indexes: this.#standings.facts() };
  }

  /** Rows that were replaced or deleted after `sequence`, at most. */
  removalsAfter(sequence: number): number {
    return this.#removals.after(sequence);
  }

  /** Documents at the head; undefined while the head is behind the file. */
  get #documents(): number | undefined {
    const { head, documents } = this.stored.info();
    return head === this.#head ? documents : undefined;
  }

  /** Starts following an index; it is built from the documents or their vectors when it holds nothing yet. */
  addIndex(definition: IndexDefinition): void {
    this.#follow(definition);
  }

  /** `predecessorClosed`: as in `ApplierDeps`. */
  #follow(definition: IndexDefinition, predecessorClosed?: Promise<void>): void {
    if (isKeptByText(definition)) return;
    const { indexesDirectory, clock, options } = this.#deps;
    const events = this.#deps.onIndexEvent(this.rangeId, definition);
    const partId = partIdOf(definition);
    const rows = partId === undefined ? { documents: true } : { parts: [partId] };
    const applier = new IndexApplier({
      open: this.#deps.openIndex(indexesDirectory, definition),
      source: {
        head: () => this.#head,
        // An index that has everything needs no look at the file.
        read: (after) => (this.#standings.lag(after) > 0 ? this.#feed.page(definition, after, rows) : undefined),
        ...(hasAllDocuments(definition) && { documents: () => this.#documents }),
      },
      clock,
      partId,
      predecessorClosed,
      ...(this.#deps.writers && { writers: this.#deps.writers }),
      mayDoubt: () => this.#deps.mayDoubt?.(definition) ?? false,
      options: partId === undefined ? options : { ...options, writerIdleMs: options.vectorWriterIdleMs },
      events: {
        ...events,
        checkpointed: (sequence) => {
          events.checkpointed?.(sequence);
          this.#purgeTombstones();
        },
      },
    });
    // An index that keeps nothing on disk starts from nothing.
    const neededAfter = () => (definition.memOnly ? applier.progress.published : applier.checkpointedSequence);
    const producer = this.#deps.openProducer?.(this.#produced, definition);
    const leaves = [this.#consumers.add({ neededAfter })];
    // That an artifact is gone is told by the feed alone.
    if (producer && definition.sourcePartId !== undefined) {
      leaves.push(this.#consumers.add({ neededAfter: () => producer.report().liveThrough }));
    }
    const leaveFeed = () => leaves.forEach((leave) => void leave());
    this.#indexes.set(definition.name, { definition, applier, producer, leaveFeed });
    this.#noteFollowedParts();
  }

  /** From now on these artifacts are made, each behind the one that it is made from. */
  async setArtifacts(definitions: readonly ArtifactDefinition[]): Promise<void> {
    await this.artifacts.set(definitions);
    this.#noteFollowedParts();
  }

  /** Stops following an index that is not in the catalog any more; its files go behind that. */
  async removeIndex(indexName: string): Promise<void> {
    const followed = this.#indexes.get(indexName);
    if (!followed) return;
    this.#indexes.delete(indexName);
    this.#noteFollowedParts();
    followed.leaveFeed();
    await followed.producer?.close();
    await followed.applier.discard();
    this.#deps.removeIndexFiles(this.#deps.indexesDirectory, followed.definition);
  }

  /** Begins to remove the rows of a part that no index and no artifact uses any longer. */
  dropPart(partId: number): void {
    void this.stored.dropPart(partId).catch(() => {
      // Rows that are left are removed when the range is next opened; until then they cost only space.
    });
  }

  /** Closes and opens an index again, with the same files and a new definition. */
  async reopenIndex(definition: IndexDefinition): Promise<void> {
    const followed = this.#indexes.get(definition.name);
    await followed?.producer?.close();
    const closed = followed?.applier.close();
    followed?.leaveFeed();
    // At once, so that whoever asks for the index meanwhile waits for it.
    this.#follow(definition, closed);
    await closed;
  }

  /** An index that serves is too far behind for new writes. An index being built or in repair never holds them up. */
  get isBehind(): boolean {
    return this.#isBehind(Number.POSITIVE_INFINITY);
  }

  /**
   * Resolves when the indexes have caught up so far that there is room for writes, or when the signal is aborted.
   * `queueBytesMax`: bytes that may wait in memory for an index, of one who writes faster than any.
   */
  async whenKeepsUp(signal: AbortSignal, queueBytesMax = Number.POSITIVE_INFINITY): Promise<void> {
    let isOpen = true;
    while (isOpen && this.#isBehind(queueBytesMax)) {
      const appliers = [...this.#indexes.values()].map(({ applier }) => applier);
      const { backlogBytesMax } = this.#deps.options;
      const waits = appliers.map((applier) => applier.whenKeepsUp(backlogBytesMax, queueBytesMax, signal));
      const kept = await Promise.all(waits);
      isOpen = !kept.includes(false);
    }
  }

  #isBehind(queueBytesMax: number): boolean {
    const { backlogBytesMax } = this.#deps.options;
    for (const { applier } of this.#indexes.values()) {
      if (applier.isOverloaded(backlogBytesMax, queueBytesMax)) return true;
    }
    return false;
  }

  /** Resolves when the named indexes show everything up to `sequence`; an index that is gone by then is not waited for. */
  async waitForIndexes(indexNames: string[] | 'all', sequence: number, signal?: AbortSignal): Promise<void> {
    const names = indexNames === 'all' ? [...this.#indexes.keys()] : indexNames;
    if (indexNames === 'all') await this.artifacts.waitFor(sequence, signal);
    await Promise.all(names.map((name) => this.#waitForIndex(name, sequence, signal)));
  }

  async #waitForIndex(name: string, sequence: number, signal?: AbortSignal): Promise<void> {
    const followed = this.#indexes.get(name);
    if (!followed) return;
    const { applier, producer, definition } = followed;
    try {
      const artifact = artifactOf(definition);
      if (artifact !== undefined) await this.artifacts.waitFor(sequence, signal);
      // The artifacts came after the documents.
      await producer?.waitFor(artifact === undefined ? sequence : this.#head, signal);
      const hasTexts = this.artifacts.textsOf(definition).length > 0;
      const isMade = producer !== undefined || artifact !== undefined || hasTexts;
      // Parts that were made for these documents came after them.
      await applier.waitFor(isMade ? this.#head : sequence, signal);
    } catch (error) {
      const now = this.#indexes.get(name);
      if (now?.applier === applier) throw error;
      // Opened again it is the same one; another of this name, made since, takes only what is written after it.
      if (now?.definition.incarnation === definition.incarnation) await this.#waitForIndex(name, sequence, signal);
    }
  }

  /**
   * Looks for damage in the files of the open indexes, or of those that are named. True when there is: the indexes concerned are
   * closed then, and built from the documents.
   */
  async lookForDamage(
    signal: AbortSignal,
    indexNames: readonly string[] = [...this.#indexes.keys()],
  ): Promise<boolean> {
    const looks = indexNames.map((name) => this.applier(name)?.lookForDamage(signal) ?? false);
    return (await Promise.all(looks)).includes(true);
  }

  /** The engine has failed at a search over these indexes. True when another attempt may work. */
  async searchFailed(signal: AbortSignal, indexNames: readonly string[]): Promise<boolean> {
    const looks = indexNames.map((name) => this.applier(name)?.searchFailed(signal) ?? false);
    return (await Promise.all(looks)).includes(true);
  }

  /** Bytes of the dense vectors that an index shows. */
  vectorBytes(indexName: string): number {
    const followed = this.#indexes.get(indexName);
    if (followed?.definition.kind !== 'dense') return 0;
    return (followed.applier.index?.stats().vectorCount ?? 0) * followed.definition.dimension * 4;
  }

  /** Of the indexes of dense vectors that are open, by their names. */
  links(): Map<string, IndexLinks> {
    const all = [...this.#indexes].map(([name, { applier }]) => [name, applier.index?.links] as const);
    return new Map(all.flatMap(([name, links]) => (links ? [[name, links]] : [])));
  }

  /** The producer of the parts of an enrichment or of an index. */
  producer(name: string): PartProducer | undefined {
    return this.artifacts.producer(name) ?? this.#indexes.get(name)?.producer;
  }

  report(indexName: string): RangeIndexReport | undefined {
    return this.#standings.report(indexName);
  }

  reports(): RangeIndexReport[] {
    return [...this.#indexes.keys()].flatMap((name) => this.report(name) ?? []);
  }

  /** Resolves when every index of now shows what the range held when it was opened, or is gone. */
  async whenReplayed(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#indexes.values()].map(({ applier }) => applier.whenReplayed(signal)));
  }

  /** Makes what the indexes show now durable. */
  async checkpointIndexes(signal: AbortSignal): Promise<void> {
    const kept = [...this.#indexes.values()].filter(({ definition }) => !definition.memOnly);
    await Promise.all(kept.map(({ applier }) => applier.checkpoint(signal)));
  }

  /** Bytes of the range's files: documents with their log, and indexes. */
  diskBytes(): number {
    return this.stored.fileBytes() + bytesBelow(this.#deps.indexesDirectory);
  }

  /**
   * Ends the work of the indexes and copies the log into the documents' file without waiting for the disk. True when only
   * `undurable` and a sync of the file system are missing for a `close` that syncs nothing.
   */
  async prepareClose(): Promise<boolean> {
    this.#isPrepared = true;
    this.#noteStates();
    await this.#closeProducers();
    await Promise.all([...this.#indexes.values()].map(({ applier }) => applier.settle()));
    return this.stored.copyLog();
  }

  /** The indexes of a range prepared to be closed whose last commit is not durable. */
  undurable(): IndexApplier[] {
    return [...this.#indexes.values()].flatMap(({ applier }) => (applier.undurable ? [applier] : []));
  }

  /**
   * Makes what the indexes hold durable, and tells what is true of the range until it is opened again. `isSynced`: the
   * file system was synced since `prepareClose`.
   */
  close(isSynced = false): Promise<RangeFacts> {
    return this.#end(
      (applier) => applier.close(),
      (stored) => stored.close(isSynced),
    );
  }

  /** As `close` when the process ends soon: nothing is written, and what is not durable is replayed at the next opening. */
  leave(): Promise<RangeFacts> {
    return this.#end(
      (applier) => applier.discard(),
      (stored) => stored.leave(),
    );
  }

  async #end(
    endIndex: (applier: IndexApplier) => Promise<void>,
    endStored: (stored: RangeReader) => Promise<void>,
  ): Promise<RangeFacts> {
    const states = this.#noteStates();
    await this.#closeProducers();
    await Promise.all([...this.#indexes.values()].map(({ applier }) => endIndex(applier)));
    this.#unsubscribe();
    const oldest = this.#deps.hasTtl() ? { oldestTtlBaseMs: this.stored.documents.oldestTtlBaseMs() } : {};
    await endStored(this.stored);
    const { documents, bytes } = this.stored.info();
    const indexes = this.#standings.factsAtRest(states);
    return { head: this.#head, documents, bytes, diskBytes: this.diskBytes(), ...oldest, indexes };
  }

  #noteStates(): ReadonlyMap<string, IndexApplier['state']> {
    this.#lastStates ??= new Map([...this.#indexes].map(([name, { applier }]) => [name, applier.state]));
    return this.#lastStates;
  }

  /** Closes a range that is about to be removed. */
  async discard(): Promise<void> {
    await this.#closeProducers();
    await Promise.all([...this.#indexes.values()].map(({ applier }) => applier.discard()));
    this.#unsubscribe();
    this.stored.detach();
  }

  /** Takes an entry that the range has applied to the indexes. */
  #take({ images, counts }: Parameters<EntryListener>[0]): void {
    this.#head = Math.max(this.#head, images.lastSequence);
    this.#noteRemovals(counts);
    this.removedTargets.take(images.frame);
    const contents = this.#followedParts.size > 0 ? contentsOf(images.frame, this.#followedParts) : undefined;
    for (const { definition, applier, producer } of this.#indexes.values()) {
      const texts = contents ? this.artifacts.textsOf(definition) : [];
      if (contents && !concerns(definition, contents, texts)) applier.pass(images);
      else if (texts.length > 0) this.#feed.offer(definition, applier, images);
      else applier.offer(images);
      producer?.wake();
    }
    this.artifacts.wake();
  }

  async #closeProducers(): Promise<void> {
    await this.artifacts.close();
    await Promise.all([...this.#indexes.values()].map(({ producer }) => producer?.close()));
  }

  /** Parts of the documents of these sequences that could not be made, one for each index or enrichment, of the last ones. */
  failuresWithin(firstSequence: number, lastSequence: number): number {
    let failures = this.artifacts.failuresWithin(firstSequence, lastSequence);
    for (const { producer } of this.#indexes.values()) {
      failures += producer?.failuresWithin(firstSequence, lastSequence) ?? 0;
    }
    return failures;
  }

  #noteFollowedParts(): void {
    const definitions = [...this.#indexes.values()].map(({ definition }) => definition);
    const texts = definitions.flatMap((definition) => this.artifacts.textsOf(definition));
    const own = definitions.flatMap((definition) => partIdOf(definition) ?? []);
    this.#followedParts = new Set([...texts.map(({ partId }) => partId), ...own]);
  }

  #noteRemovals({ updated, deleted, transformed, upserted }: WriteCounts): void {
    this.#removals.forget(this.shownBy([...this.#indexes.keys()]));
    this.#removals.note(this.#head, updated + deleted + transformed + upserted);
  }

  /** Keeps tombstones and superseded changes after the sequence in the feed until the pin is released. */
  pinFeed(afterSequence: number): FeedPin {
    return this.#consumers.pin(afterSequence);
  }

  /** Changes are being forgotten that nothing needed when that began: a pin of now may be too late for some of them. */
  get isPurging(): boolean {
    return this.#purges > 0;
  }

  #purgeTombstones(): void {
    // Changes that the last checkpoint would release are removed with the first one after the next opening.
    if (this.#isPrepared) return;
    this.#purges += 1;
    void this.stored
      .purgeTombstones(this.#consumers.purgeableThrough(this.#head))
      .catch(() => {
        // A purge that fails is tried again with the next checkpoint; what it would have removed costs only space.
      })
      .finally(() => {
        this.#purges -= 1;
      });
  }
}
