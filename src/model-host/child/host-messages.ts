import type { TransportedError } from '../../runtime/error-transport.ts';
import type { LoadedInfo } from '../backend.ts';
import type { HostSpec } from '../model-spec.ts';
import type { Priority } from '../priority.ts';
import type { PlacedArray } from './large-arrays.ts';

/** A message of the server to a child. */
export type ToChild =
  | { readonly type: 'load'; readonly spec: HostSpec; readonly sharesMemory: boolean }
  | {
      readonly type: 'run';
      readonly id: number;
      readonly name: string;
      readonly input: unknown;
      readonly arrays?: readonly PlacedArray[];
      readonly priority?: Priority;
    }
  /** The large arrays of a result have been read. */
  | { readonly type: 'taken'; readonly arrays: readonly PlacedArray[] }
  /** Whether the memory that was asked for may be taken. */
  | { readonly type: 'reserved'; readonly id: number; readonly granted: boolean }
  | { readonly type: 'cancel'; readonly id: number }
  | { readonly type: 'ping' }
  | { readonly type: 'stop' };

/** A message of a child to the server. Any of them shows that the child is alive. */
export type FromChild =
  | { readonly type: 'loaded'; readonly info: LoadedInfo; readonly residentBytes: number }
  | { readonly type: 'refused'; readonly error: TransportedError }
  | { readonly type: 'event'; readonly id: number; readonly event: unknown }
  | { readonly type: 'progress' }
  | { readonly type: 'reserve'; readonly id: number; readonly bytes: number }
  | { readonly type: 'release'; readonly bytes: number }
  | { readonly type: 'done'; readonly id: number; readonly result: unknown; readonly arrays?: readonly PlacedArray[] }
  | { readonly type: 'failed'; readonly id: number; readonly error: TransportedError }
  | { readonly type: 'pong'; readonly residentBytes: number };
