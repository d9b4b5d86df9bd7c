import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { pollOf } from './descriptor-poll.ts';

/** How long a line waits for a full pipe; the lines after it do not, until the pipe takes one again. */
const waitMs = 100;
const pauseMs = 5;
/** Taken without a wait by a descriptor that has room at all: a page of a pipe, a small part of a socket. */
const roomBytes = 4096;

interface Stream {
  readonly descriptor: number;
  /** Whether it takes `roomBytes` now; undefined where its writes do not wait. */
  readonly hasRoom: (() => boolean) | undefined;
}

/**
 * The standard error stream, for the lines of the log. Lines that it does not take are lost, and nothing else: the
 * reader of a pipe may be slow, stand still or be gone, and the log may be a file on the very disk whose being full it
 * is to tell of.
 */
class StandardError {
  #stream: Stream | undefined;
  #isStalled = false;
  /** The stream has only the beginning of a line. */
  #isTorn = false;

  /** Returns false for a line that is lost. */
  write(line: string): boolean {
    const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
    let at = 0;
    try {
      this.#stream ??= withoutWaiting(2);
      for (let waitedMs = 0; at < bytes.length; ) {
        try {
          at += writeNow(this.#stream, bytes, at);
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
 * The process would stand still with the reader of a full pipe. Whether writes wait is said for all that have the pipe
 * open alike, so it is opened once more. A socket, as of journald, cannot be, nor can a pipe of another user: it is
 * asked before each write.
 */
function withoutWaiting(descriptor: number): Stream {
  const status = fstatSync(descriptor);
  if (status.isFile()) return { descriptor, hasRoom: undefined };
  try {
    const path = `/proc/self/fd/${descriptor}`;
    if (status.isFIFO()) {
      return { descriptor: openSync(path, constants.O_WRONLY | constants.O_NONBLOCK), hasRoom: undefined };
    }
  } catch {
    // It is asked as well.
  }
  return { descriptor, hasRoom: pollOf(descriptor) };
}

/** Writes what there is room for; throws `EAGAIN` where there is none. */
function writeNow({ descriptor, hasRoom }: Stream, bytes: Buffer, at: number): number {
  if (hasRoom === undefined) return writeSync(descriptor, bytes, at);
  if (!hasRoom()) throw Object.assign(new Error('there is no room'), { code: 'EAGAIN' });
  return writeSync(descriptor, bytes, at, Math.min(roomBytes, bytes.length - at));
}

function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}
