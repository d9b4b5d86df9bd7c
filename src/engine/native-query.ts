import { awaitNative, callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

const noLegs = { vectorHandles: [], vectors: new Uint8Array() };
let nextOperation = 1;

/**
 * Runs a plan over the indexes of a table's ranges. Statistics, order and page are those of all of them together.
 * `handles`: the text index of each range; `vectorHandles`: for each leg of the plan its index of each range, leg
 * after leg; `vectors`: the query vectors of the legs, one after another.
 * A cheap search is answered on this thread, at once; a dearer one, too, where the caller is alone. Otherwise an aborted signal
 * stops the call within about a thousand documents; it then throws `query_timeout`. The signal is asked for only then:
 * many callers make one on demand.
 */
export async function queryIndexes(
  handles: number[],
  planJson: string,
  caller: { readonly signal: AbortSignal; isAlone?(): boolean },
  { vectorHandles, vectors }: { vectorHandles: number[]; vectors: Uint8Array } = noLegs,
) {
  const operation = takeOperation();
  const isAlone = caller.isAlone?.() ?? false;
  const started = callNative(() => nativeAddon().query(handles, vectorHandles, planJson, vectors, operation, isAlone));
  return started instanceof Promise ? untilAborted(operation, started, caller) : started;
}

/**
 * Which documents of the index's newest commit the filters of a plan let through, expired ones too: a bit for each
 * ordinal, the first in the lowest bit of the first byte. An aborted signal stops it as it does a query.
 */
export async function matchingOrdinals(
  handle: number,
  planJson: string,
  caller: { readonly signal: AbortSignal },
): Promise<Uint8Array> {
  const operation = takeOperation();
  const started = callNative(() => nativeAddon().matchingOrdinals(handle, planJson, operation));
  return untilAborted(operation, started, caller);
}

export function takeOperation(): number {
  const operation = nextOperation;
  nextOperation = (nextOperation % 0x7fff_ffff) + 1;
  return operation;
}

export async function untilAborted<Result>(
  operation: number,
  started: Promise<Result>,
  { signal }: { readonly signal: AbortSignal },
): Promise<Result> {
  const cancel = () => callNative(() => nativeAddon().cancel(operation));
  // A signal that was aborted before tells nobody any more.
  if (signal.aborted) cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await awaitNative(() => started);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** One byte a row of the frame: 1 where the stored body matches the plan, by the mapping of `schema`. */
export async function matchDocuments(schema: unknown, planJson: string, frame: Uint8Array): Promise<Uint8Array> {
  return awaitNative(() => nativeAddon().matchDocuments(mappingOptionsJson(schema), planJson, frame));
}

/** One object of path -> marked fragments for each row of the frame, by the mapping of `schema`. */
export async function highlightDocuments(
  schema: unknown,
  planJson: string,
  highlightJson: string,
  frame: Uint8Array,
): Promise<Record<string, string[]>[]> {
  const options = mappingOptionsJson(schema);
  return JSON.parse(await awaitNative(() => nativeAddon().highlightDocuments(options, planJson, highlightJson, frame)));
}

/**
 * The hits of a sorted page in the order of their stored documents, with the sort values of those. `frame` holds the
 * documents that have changed since they were indexed; `row` of a hit says which is its own.
 */
export async function orderPage(
  schema: unknown,
  planJson: string,
  hits: readonly { key: string; position: string; row: number | null }[],
  frame: Uint8Array,
): Promise<{ hit: number; sort: unknown[] }[]> {
  const options = mappingOptionsJson(schema);
  return JSON.parse(await awaitNative(() => nativeAddon().orderPage(options, planJson, JSON.stringify(hits), frame)));
}

/** Options for the mapping of `schema` alone. */
function mappingOptionsJson(schema: unknown): string {
  return JSON.stringify({ name: 'match', incarnation: '', mem_only: true, schema: schema ?? null });
}
