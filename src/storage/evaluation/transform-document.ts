import { dateTimeMs, instantMs } from '../../lib/instant-ms.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { StoredRow } from '../range/stored-rows.ts';
import type { EvaluationContext } from './evaluation-context.ts';
import { applyOperations, integerMax, type TransformOperation } from './transforms.ts';

declare global {
  interface JSON {
    /** A value that `stringify` writes as this text. */
    rawJSON(text: string): unknown;
  }
}

/** Bounds of a transformed document: those of an inserted one. */
const bodyBytesMax = 16 * 1_024 * 1_024;
const depthMax = 64;
const membersMax = 10_000;
const memberNameBytesMax = 65_535;

interface TransformContext {
  rangeId: number;
  key: string;
  timeMs: number;
  timestamp: string;
  /** Dotted path of the field that holds the TTL base; undefined when documents do not expire. */
  ttlField: string | undefined;
}

/** A document that a transform is applied to, or leaves. */
export type TransformedDocument = Pick<StoredRow, 'body' | 'ttlBaseMs' | 'writtenMs' | 'crc'>;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/**
 * The document after a transform row's operations; undefined when there is no document and no `upsert`, 'unfit' when no
 * operation took effect and at least one because of what it found. Fails with
 * `data_corrupted` when the stored bytes do not match their checksum, `limit_exceeded` or `json_too_deep` when the
 * result outgrows a document's bounds, `number_out_of_range` where integers would be rounded.
 */
export function transformDocument(
  held: TransformedDocument | undefined,
  instructions: Uint8Array,
  context: TransformContext,
): TransformedDocument | 'unfit' | undefined {
  if (held) checkIntact(held, context);
  const transformed = transformBody(held?.body, instructions, context);
  if (transformed === undefined || transformed === 'unfit') return transformed;
  const { body, document } = transformed;
  refuseNewTimes(document, held, context);
  const writtenMs = Object.hasOwn(document, '_timestamp') ? 0 : held?.writtenMs || context.timeMs;
  return { body, ttlBaseMs: ttlBase(document, held, writtenMs, context), writtenMs, crc: Bun.hash.crc32(body) };
}

function transformBody(
  held: Uint8Array | undefined,
  instructions: Uint8Array,
  { key, timestamp }: Pick<TransformContext, 'key' | 'timestamp'>,
): { body: Uint8Array; document: Record<string, unknown> } | 'unfit' | undefined {
  const { operations, upsert } = JSON.parse(decoder.decode(instructions)) as {
    operations: TransformOperation[];
    upsert?: boolean;
  };
  if (!held && upsert !== true) return undefined;
  const document: Record<string, unknown> = held ? JSON.parse(decoder.decode(held)) : {};
  const { applied, unfit } = applyOperations(document, operations, timestamp);
  if (applied === 0 && unfit > 0) return 'unfit';
  if (isDeeperThan(document, depthMax)) {
    throw new ServiceError('json_too_deep', `a transform would nest the document "${key}" deeper than ${depthMax}`);
  }
  if (hasLongName(document)) {
    const message = `a transform would give the document "${key}" a member name of more than ${memberNameBytesMax} bytes`;
    throw new ServiceError('limit_exceeded', message);
  }
  const members = membersOf(document);
  // One that has more already, by an earlier release, may be changed as long as it does not grow.
  if (members > membersMax && members > (held ? membersOf(JSON.parse(decoder.decode(held))) : 0)) {
    const message = `a transform would give the document "${key}" more than ${membersMax} members`;
    throw new ServiceError('limit_exceeded', message);
  }
  // Without an operation the document stays as it was written, to the byte.
  const body = held && operations.length === 0 ? held : encoder.encode(documentJson(document));
  if (body.byteLength > bodyBytesMax) {
    const message = `a transform would grow the document "${key}" beyond ${bodyBytesMax} bytes`;
    throw new ServiceError('limit_exceeded', message);
  }
  return { body, document };
}

/**
 * The TTL base of a stored document as its field says, milliseconds since 1970. A document without an instant
 * there lives from the time of its write, so that reading it again changes nothing.
 */
export function ttlBaseOf(held: StoredRow, context: TransformContext): number {
  checkIntact(held, context);
  const document = JSON.parse(decoder.decode(held.body)) as Record<string, unknown>;
  const written = held.writtenMs || (instantMs(document._timestamp) ?? held.ttlBaseMs);
  return ttlBase(document, held, held.writtenMs, { ...context, timeMs: written });
}

/** The TTL base of a document that comes with a write, as the field of the range says. */
export function ttlBaseOfBody(body: Uint8Array, writtenMs: number, context: EvaluationContext): number {
  return ttlBase(JSON.parse(decoder.decode(body)), undefined, writtenMs, context);
}

/** Fails with `validation_failed` on what an insert would refuse, unless the document had it before. */
function refuseNewTimes(
  document: Record<string, unknown>,
  held: TransformedDocument | undefined,
  { key, ttlField }: TransformContext,
): void {
  const before = (path: string) => held && valueAt(JSON.parse(decoder.decode(held.body)), path);
  const refuse = (path: string, what: string) => {
    if (Bun.deepEquals(before(path), valueAt(document, path), true)) return;
    throw new ServiceError('validation_failed', `a transform of the document "${key}": ${what}`);
  };
  const timestamp = document._timestamp;
  if (timestamp !== undefined && (typeof timestamp !== 'string' || dateTimeMs(timestamp) === undefined)) {
    refuse('_timestamp', '_timestamp must be an RFC 3339 date and time');
  }
  const base = ttlField === undefined ? undefined : valueAt(document, ttlField);
  if (ttlField !== undefined && base !== undefined && instantMs(base) === undefined) {
    const what = 'must be an RFC 3339 time, or nanoseconds since 1970 such as 1.7e18';
    refuse(ttlField, `the TTL field ${ttlField} ${what}`);
  }
}

function checkIntact(held: TransformedDocument, { key, rangeId }: TransformContext): void {
  if (Bun.hash.crc32(held.body) === held.crc) return;
  throw new ServiceError('data_corrupted', `the stored document "${key}" does not match its checksum`, {
    details: { key, range_id: rangeId },
  });
}

/** The field's instant; the write time when it is missing or not an instant. */
function ttlBase(
  document: unknown,
  held: TransformedDocument | undefined,
  writtenMs: number,
  context: Pick<TransformContext, 'timeMs' | 'ttlField'>,
): number {
  if (context.ttlField === undefined) return held?.ttlBaseMs ?? 0;
  if (context.ttlField === '_timestamp' && writtenMs > 0) return writtenMs;
  // 0 would mean never.
  return Math.max(1, instantMs(valueAt(document, context.ttlField)) ?? context.timeMs);
}

/** The member at a dotted path, as the engine finds it: of objects alone; undefined where there is none. */
function valueAt(document: unknown, path: string): unknown {
  let value: unknown = document;
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    if (!Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** A number beyond 2^53 keeps its exponent: as digits alone it would be an integer, which a document may not have. */
export function documentJson(document: unknown): string {
  if (!hasLargeNumber(document)) return JSON.stringify(document);
  return JSON.stringify(document, (_name, value: unknown) =>
    isLargeNumber(value) ? JSON.rawJSON(value.toExponential()) : value,
  );
}

function isLargeNumber(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) > integerMax;
}

function hasLargeNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isLargeNumber(value);
  return Object.values(value).some(hasLargeNumber);
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}

/** Members at every level. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, member) => sum + membersOf(member), own);
}

/** Whether a member at any level has a name that is too long as it is written. */
function hasLongName(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  // A character is written with six bytes at most.
  const isLong = (name: string) =>
    name.length > memberNameBytesMax / 6 && Buffer.byteLength(JSON.stringify(name)) - 2 > memberNameBytesMax;
  if (!Array.isArray(value) && Object.keys(value).some(isLong)) return true;
  return Object.values(value).some(hasLongName);
}
