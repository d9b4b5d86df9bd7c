import { freeBytes } from '../../lib/free-bytes.ts';
import { smallPageBytes } from './coalesce-pages.ts';

/**
 * How many appliers a frame waits for. Left to garbage collections, frames that were applied long ago would be more than
 * all that wait: a collection comes when the heap has grown to a multiple of what it holds.
 */
const holders = new WeakMap<Uint8Array, number>();

/** One more applier has the frame in its queue. */
export function holdFrame(frame: Uint8Array): void {
  if (isWorthIt(frame)) holders.set(frame, (holders.get(frame) ?? 0) + 1);
}

/** An applier is done with the frame: behind the last of them, and when nobody else ever had it, its memory is given back. */
export function letFrameGo(frame: Uint8Array): void {
  if (!isWorthIt(frame)) return;
  const others = (holders.get(frame) ?? 1) - 1;
  if (others > 0) holders.set(frame, others);
  else {
    holders.delete(frame);
    freeBytes(frame);
  }
}

/** Small frames are left to garbage collections, which they do not burden. */
function isWorthIt(frame: Uint8Array): boolean {
  return frame.byteLength > smallPageBytes;
}
