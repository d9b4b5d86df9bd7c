import type { Statement } from 'bun:sqlite';
import { RequestAnswers } from '../range/request-answers.ts';
import { type ReadSource, reading } from '../storage-error.ts';
import { ChangeFeed } from './change-feed.ts';
import { DocumentStore } from './document-store.ts';
import { NoteStore } from './note-store.ts';
import { PartStore } from './part-store.ts';

/** The readers of one range's file, over one connection. */
export class RangeStores {
  readonly documents: DocumentStore;
  readonly parts: PartStore;
  readonly notes: NoteStore;
  readonly feed: ChangeFeed;
  readonly answers: RequestAnswers;
  readonly #source: ReadSource;
  readonly #begin: Statement;
  readonly #end: Statement;

  constructor(path: string, source: ReadSource) {
    this.documents = reading(source, () => new DocumentStore(path, source));
    this.parts = new PartStore(this.documents.database, source);
    this.notes = new NoteStore(this.documents.database, source);
    this.feed = new ChangeFeed(this.documents.database, this.documents.bodies, source);
    this.answers = new RequestAnswers(this.documents.database);
    this.#source = source;
    this.#begin = this.documents.database.prepare('BEGIN');
    this.#end = this.documents.database.prepare('COMMIT');
  }

  /** Runs reads that all see the file as of one moment: between two statements the writer may commit. */
  atOneInstant<Result>(read: () => Result): Result {
    if (this.documents.database.inTransaction) return read();
    reading(this.#source, () => this.#begin.run());
    try {
      return read();
    } finally {
      reading(this.#source, () => this.#end.run());
    }
  }

  close(): void {
    this.#begin.finalize();
    this.#end.finalize();
    this.parts.close();
    this.notes.close();
    this.feed.close();
    this.documents.close();
  }
}
