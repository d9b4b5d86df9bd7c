import type { dlopen } from 'bun:ffi';

const pollOut = 0x4;
/** Of `struct pollfd`: the descriptor, what is asked of it, and what holds. */
const layout = { bytes: 8, events: 4, revents: 6 };

/** Asks the system whether a descriptor takes bytes now; undefined where it cannot be asked. Loaded when it is first used. */
export function pollOf(descriptor: number): (() => boolean) | undefined {
  try {
    const ffi = process.getBuiltinModule('bun:ffi') as { dlopen: typeof dlopen };
    const { symbols } = ffi.dlopen('libc.so.6', { poll: { args: ['ptr', 'u64', 'i32'], returns: 'i32' } });
    const bytes = new Uint8Array(layout.bytes);
    const asked = new DataView(bytes.buffer);
    asked.setInt32(0, descriptor, true);
    asked.setInt16(layout.events, pollOut, true);
    return () => {
      symbols.poll(bytes, 1, 0);
      // A fault holds as well: the write says which.
      return asked.getInt16(layout.revents, true) !== 0;
    };
  } catch {
    return undefined;
  }
}
