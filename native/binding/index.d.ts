// Written by `bun run generate` from native/binding/src. Do not edit.

export interface FrameOptions {
  /** RFC 3339; becomes `_timestamp` of documents that bring none. */
  timestamp: string;
  /** The same instant in milliseconds since 1970. */
  timestampMs: number;
  /** Dotted path of the TTL base; absent when the table has no TTL. */
  ttlField?: string;
  keyBytesMax?: number;
}

/** Bounds of a scan; what is absent has the documented default. */
export interface ScanLimits {
  /** Levels of objects and arrays. */
  depthMax?: number;
  /** Members of one document, all levels together. */
  membersMax?: number;
  memberNameBytesMax?: number;
  documentBytesMax?: number;
  /** Inserts, deletes, transforms and records of one request. */
  keysMax?: number;
  pathSegmentsMax?: number;
}

export interface ScannedWrite {
  /** The request without its documents, keys and transforms. */
  envelopeJson: string;
  /** Table names for `tables`; one empty name otherwise. */
  sections: Array<string>;
  /** Seven words an entry: section, kind, key offset, key bytes, body offset, body bytes, flags. */
  entries: Uint32Array;
}

/** The document frame of one section's entries of a scanned request. `schemaHandle` is 0 or from `openTableSchema`. */
export declare function buildFrame(bytes: Uint8Array, entries: Uint32Array, options: FrameOptions, schemaHandle: number): Promise<Uint8Array>;

/** `buildFrame` on the calling thread, for requests of a few tens of kilobytes. */
export declare function buildFrameSync(bytes: Uint8Array, entries: Uint32Array, options: FrameOptions, schemaHandle: number): Uint8Array;

/** Gives a handle back. Frames that are being built finish with their schema. */
export declare function closeTableSchema(schemaHandle: number): void;

/** The version of the engine's crate. */
export declare function engineVersion(): string;

/** Compiles a table schema given as JSON; the handle lives until `closeTableSchema`. */
export declare function openTableSchema(json: string): Promise<number>;

/** Panics inside the guard, so that a test can prove that a panic arrives as an error with the code `engine_panic`. */
export declare function provokePanic(): void;

/** `provokePanic` on the thread pool. */
export declare function provokePanicAsync(): Promise<void>;

/** Checks one JSON text of any type. */
export declare function scanJson(bytes: Uint8Array, limits?: ScanLimits | undefined | null): void;

export declare function scanWrite(bytes: Uint8Array, kind: 'batch' | 'tables' | 'merge', limits?: ScanLimits | undefined | null): Promise<ScannedWrite>;

/** `scanWrite` on the calling thread, for bodies of a few tens of kilobytes. */
export declare function scanWriteSync(bytes: Uint8Array, kind: 'batch' | 'tables' | 'merge', limits?: ScanLimits | undefined | null): ScannedWrite;
