import { constants, fstatSync, openSync, writeSync } from 'node:fs';

/** How long a line waits for a full pipe; the lines after it do not, until the pipe takes one again. */
const waitMs = 100;
const pauseMs = 5;

/**
 * The standard error stream, for the lines of the log. Lines that it does not take are lost, and nothing else: the reader of a pipe
 * may be slow, stand still or be gone, and the log may be a file on the very disk whose being full it is to tell of.
 */
class StandardError {
  #descriptor: number | undefined;
  #isStalled = false;
  /** The stream has only the beginning of a line. */
  #isTorn = false;

  /** Returns false for a line that is lost. */
  write(line: string): boolean {
    const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
    let at = 0;
    try {
      this.#descriptor ??= withoutWaiting(2);
      for (let waitedMs = 0; at < bytes.length; ) {
        try {
          at += writeSync(this.#descriptor, bytes, at);
        } catch (error) {
          if (!isFull(error) || this.#isStalled || waitedMs >= waitMs) throw error;
          Bun.sleepSync(pauseMs);
          waitedMs += pauseMs;
        }
      }
      this.#isStalled = false;
      this.#isTorn = false;
      return true;
    } catch (error) {
      // There is no other place to say it.
      this.#isStalled ||= isFull(error);
      this.#isTorn ||= at > 0;
      return false;
    }
  }
}

const standardError = new StandardError();

/** Writes a line to the standard error stream; returns false where it is lost. */
export function writeToStandardError(line: string): boolean {
  return standardError.write(line);
}

/**
 * The process would stand still with the reader of a full pipe. Whether writes wait is said for all that have the pipe open alike,
 * so it is opened once more.
 */
function withoutWaiting(descriptor: number): number {
  try {
    if (!fstatSync(descriptor).isFIFO()) return descriptor;
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return descriptor;
  }
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}
