import { AssertionError } from '../lib/assert.ts';
import { isErrorCode } from '../protocol/error-codes.ts';
import { ServiceError } from '../protocol/service-error.ts';

const indexFaults = ['index_damaged', 'index_incompatible'] as const;
type IndexFault = (typeof indexFaults)[number];

/** An index directory cannot be used as it is: it is to be emptied and the index rebuilt from the documents. */
export class IndexFaultError extends Error {
  override readonly name = 'IndexFaultError';
  readonly code: IndexFault;

  constructor(code: IndexFault, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/**
 * The machine lacks what a checkpoint takes, such as room on the disk. Nothing of it has been synced: the index is as before, and
 * another attempt may work.
 */
export class UnwrittenCheckpointError extends Error {
  override readonly name = 'UnwrittenCheckpointError';
}

/** The engine could not do what it must be able to. */
class EngineAssertionError extends AssertionError {}

/** Translates what the addon threw; everything that is not a documented answer is a fault of ours. */
function translateEngineError(error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const fault = indexFaults.find((name) => name === code);
  if (fault !== undefined) return new IndexFaultError(fault, message, error);
  if (code === 'checkpoint_unwritten') return new UnwrittenCheckpointError(message, { cause: error });
  if (code === 'engine_panic') {
    return new ServiceError(code, 'the native engine failed; the request was not carried out', {
      details: { panic: message },
      cause: error,
    });
  }
  if (isErrorCode(code) && code !== 'internal') return new ServiceError(code, message, { cause: error });
  return new EngineAssertionError(`native engine: ${message}`, { cause: error });
}

function isPanic(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.code === 'engine_panic';
}

/** Failures whose indexes have been looked at: they say nothing of those of another table in the same query. */
const settled = new WeakSet<object>();

/** The engine has failed at something that it must be able to do: files that do not hold what they should are a cause. */
export function isEngineFault(error: unknown): boolean {
  if (error instanceof Error && settled.has(error)) return false;
  return isPanic(error) || error instanceof EngineAssertionError || error instanceof IndexFaultError;
}

/**
 * The failure of a search, for its caller. A panic over indexes that are whole, or were built again, is the query's: the engine
 * cannot carry it out.
 */
export function searchFailure(error: unknown): unknown {
  const failure = shownFailure(error);
  if (failure instanceof Error) settled.add(failure);
  return failure;
}

function shownFailure(error: unknown): unknown {
  if (error instanceof Error && settled.has(error)) return error;
  if (error instanceof IndexFaultError) {
    const message = 'an index is damaged, and built again from the documents; try again shortly';
    return new ServiceError('unavailable', message, { cause: error });
  }
  if (!isPanic(error)) return error;
  const { details, cause } = error;
  const message = 'the native engine fails on this query over sound indexes: it is not supported; ask in another way';
  return new ServiceError('engine_panic', message, { ...(details && { details }), cause });
}

/** Runs a synchronous native call. */
export function callNative<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw translateEngineError(error);
  }
}

/** Awaits a native task. */
export async function awaitNative<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    throw translateEngineError(error);
  }
}
