import { dlopen, ptr } from 'bun:ffi';

/** Bits of the kernel's number of another process's CPU clock that say which of its clocks is meant: that of the scheduler. */
const schedulerClock = 2;

const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } });
const secondsAndNanoseconds = new BigInt64Array(2);

/**
 * CPU time that a process has used in all of its threads, those that have
 * ended too, in microseconds; exact to the nanosecond.
 */
export function cpuUsOf(pid: number): number {
  if (libc.clock_gettime((~pid << 3) | schedulerClock, ptr(secondsAndNanoseconds)) !== 0) {
    throw new Error(`the CPU time of process ${pid} cannot be read`);
  }
  const [seconds = 0n, nanoseconds = 0n] = secondsAndNanoseconds;
  return Number(seconds) * 1e6 + Number(nanoseconds) / 1_000;
}
