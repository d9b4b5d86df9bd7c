import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Source } from '../derive-source.ts';
import type { Batch, DocumentRow } from '../following/followed-part.ts';
import type { HeldPart } from '../following/held-part.ts';
import type { PartOutcome } from '../following/part-outcome.ts';

/** A list of edges, and the bytes that it took to make it. */
export interface MadeEdges {
  readonly outcome: PartOutcome;
  readonly bytes: number;
}

/** Makes the list of a document. A `ServiceError` says that the document can have none until it changes. */
type MakeEdges = (row: DocumentRow, source: Source, held: HeldPart | undefined) => MadeEdges | Promise<MadeEdges>;

/** Lists of edges of documents; nothing is asked of a model. */
export class EdgeBatch implements Batch {
  readonly #make: MakeEdges;
  readonly #made: { row: DocumentRow; outcome: PartOutcome }[] = [];
  #bytes = 0;

  constructor(make: MakeEdges) {
    this.#make = make;
  }

  get isFull(): boolean {
    return this.#bytes >= limits.enrichmentBatchBytes;
  }

  /** Of those that have to be worked on by a model. */
  get sourceCount(): number {
    return 0;
  }

  async add(row: DocumentRow, source: Source, held: HeldPart | undefined): Promise<void> {
    const { outcome, bytes } = await this.#outcomeOf(row, source, held);
    this.#bytes += bytes;
    this.#made.push({ row, outcome });
  }

  async #outcomeOf(row: DocumentRow, source: Source, held: HeldPart | undefined): Promise<MadeEdges> {
    try {
      return await this.#make(row, source, held);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return { outcome: { kind: 'failed', error, isFinal: true }, bytes: 0 };
    }
  }

  run(): Promise<{ row: DocumentRow; outcome: PartOutcome }[]> {
    return Promise.resolve(this.#made);
  }
}
