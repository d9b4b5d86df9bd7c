/** A stored row without its body. */
export interface RowHead {
  ordinal: number;
  sequence: number;
  ttlBaseMs: number;
  bodyBytes: number;
}

export interface StoredRow extends RowHead {
  /** When the document was written, milliseconds since 1970; 0 where the body says so itself. */
  writtenMs: number;
  crc: number;
  body: Uint8Array;
}

export interface KeyedRow extends StoredRow {
  key: Uint8Array;
}

/** A document to be written. */
export interface NewDocument {
  key: Uint8Array;
  body: Uint8Array;
  /** 0 for none. */
  ttlBaseMs: number;
  /** Milliseconds since 1970; 0 where the body says so itself. */
  writtenMs: number;
  crc: number;
}

/** A written row's place. */
export interface RowPlace {
  ordinal: number;
  sequence: number;
  isNew: boolean;
}
