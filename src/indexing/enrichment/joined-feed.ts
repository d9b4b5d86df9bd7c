import type { IndexDefinition } from '../../index-kinds/all-kinds.ts';
import { FrameBuilder } from '../../lib/document-frame.ts';
import type { FeedRows } from '../../storage/reader/change-feed.ts';
import type { RangeReader } from '../../storage/reader/range-reader.ts';
import type { IndexApplier } from '../applier/index-applier.ts';
import type { ChangePage } from '../range-index.ts';
import { withArtifactTexts } from './artifact-texts.ts';
import type { RangeArtifacts } from './range-artifacts.ts';

/** The change feed of a range, with the texts of artifacts joined to their documents for the indexes that hold them. */
export class JoinedFeed {
  readonly #stored: RangeReader;
  readonly #artifacts: Pick<RangeArtifacts, 'textsOf'>;

  constructor(stored: RangeReader, artifacts: Pick<RangeArtifacts, 'textsOf'>) {
    this.#stored = stored;
    this.#artifacts = artifacts;
  }

  /** A page of what an index is built from, after `after`. Of artifacts their text belongs to the document. */
  page(definition: IndexDefinition, after: number, rows: FeedRows, through?: number): ChangePage | undefined {
    const texts = this.#artifacts.textsOf(definition);
    if (texts.length === 0) return this.#stored.feed.read(after, rows, through);
    const parts = texts.map(({ partId }) => partId);
    const page = this.#stored.feed.read(after, { documents: true, parts }, through);
    return page && { ...page, frame: withArtifactTexts(page.frame, texts) };
  }

  /** Offers the changes of the entry, as the feed joins them. */
  offer(definition: IndexDefinition, applier: IndexApplier, { firstSequence, lastSequence }: ChangePage): void {
    for (let after = firstSequence - 1; after < lastSequence; ) {
      const page = this.page(definition, after, {}, lastSequence);
      if (!page) {
        applier.pass({ firstSequence: after + 1, lastSequence, frame: new FrameBuilder(1, 1).finish() });
        return;
      }
      applier.offer({ ...page, firstSequence: after + 1 });
      after = page.lastSequence;
    }
  }
}
