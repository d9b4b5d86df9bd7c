import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import { minuteMs } from '../lib/units.ts';

/** One request, as the audit log has it. Members that are undefined are left out. */
export interface AuditEntry {
  readonly request_id: string;
  /** Empty for who was not identified. */
  readonly user: string;
  readonly key_id?: string | undefined;
  /**
   * Of a command on a data directory at rest: the number of the user of the system who
   * has run it. The runtime takes the name from a variable.
   */
  readonly system_user?: number | undefined;
  /** Address of the client. */
  readonly client?: string | undefined;
  readonly method: string;
  /** The pattern of the route. */
  readonly route: string;
  /** Values of the path, such as a table or the name of a secret. */
  readonly params?: Readonly<Record<string, string>> | undefined;
  /** Tables that the body names. */
  readonly tables?: readonly string[] | undefined;
  readonly status: number;
}

interface Deps {
  readonly path: string;
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
  /** A file that would become larger is put aside as `PATH.1`, the one before as `PATH.2`, and so on. */
  readonly fileBytesMax: number;
  /** Files besides the current one. */
  readonly filesKept: number;
  /** Told of each line that could not be written, and of each that made a file too large that could not be put aside. */
  readonly onFailed: (failed: 'writing' | 'rotating', error: unknown) => void;
  /** Told of every other line. */
  readonly onWritten: () => void;
}

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDWR } = constants;

interface OpenFile {
  readonly descriptor: number;
  readonly device: number;
  readonly inode: number;
  readonly isPipe: boolean;
}

/** Requests of strangers that are written in a minute; anybody can send them. */
const strangersPerMinute = 60;

/**
 * Records of who did what, as JSON lines in a file of its own that only the owner may read. A line is handed to the
 * system before its request is answered, so it outlives a kill of the process. A line that cannot be written fails no
 * request; the next one tells by `lost` how many there were. A file that is moved away or removed is begun again by the
 * next line; one that cannot be put aside grows on. It may be a pipe, whose reader nobody waits for.
 */
export class AuditLog {
  readonly #deps: Deps;
  #file: OpenFile | undefined;
  #minuteStartMs = Number.NEGATIVE_INFINITY;
  #strangers = 0;
  #suppressed = 0;
  #lost = 0;
  /** The file ends within a line: the machine went down, or a pipe has no more room. */
  #isTorn = false;

  /** Throws when the file cannot be opened. */
  constructor(deps: Deps) {
    this.#deps = deps;
    this.#open();
  }

  /** A stranger has given no credential that is valid: such lines are bounded. */
  record(entry: AuditEntry, { isStranger = false } = {}): void {
    const { clock, onFailed, onWritten } = this.#deps;
    if (isStranger && this.#isSuppressed(clock.monotonicMs())) return;
    const counts = {
      ...(this.#suppressed > 0 ? { suppressed: this.#suppressed } : {}),
      ...(this.#lost > 0 ? { lost: this.#lost } : {}),
    };
    const line = `${JSON.stringify({ ts: new Date(clock.nowMs()).toISOString(), ...entry, ...counts })}\n`;
    try {
      if (this.#write(line)) onWritten();
      this.#suppressed = 0;
      this.#lost = 0;
    } catch (error) {
      onFailed('writing', error);
      this.#lost += 1;
      // A pipe keeps what it has taken for its reader only as long as it is open.
      if (this.#file?.isPipe !== true) this.#forgetFile();
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor);
    this.#file = undefined;
  }

  /** The next line looks at what the file has become. */
  #forgetFile(): void {
    try {
      this.close();
    } catch {
      // The descriptor is gone all the same.
    }
    this.#file = undefined;
  }

  #isSuppressed(nowMs: number): boolean {
    if (nowMs - this.#minuteStartMs >= minuteMs) {
      this.#minuteStartMs = nowMs;
      this.#strangers = 0;
    }
    this.#strangers += 1;
    if (this.#strangers <= strangersPerMinute) return false;
    this.#suppressed += 1;
    return true;
  }

  /** Returns whether the files are within their bounds. */
  #write(line: string): boolean {
    let { descriptor, isPipe, bytes } = this.#open();
    const isFull = bytes > 0 && bytes + Buffer.byteLength(line) > this.#deps.fileBytesMax;
    const isBounded = !isFull || this.#isRotated();
    if (isFull) ({ descriptor, isPipe, bytes } = this.#open());
    const whole = Buffer.from(this.#isTorn ? `\n${line}` : line);
    if (writeSync(descriptor, whole) < whole.length) {
      if (isPipe) this.#isTorn = true;
      else ftruncateSync(descriptor, bytes);
      throw new Error('only a part of a line was taken');
    }
    this.#isTorn = false;
    return isBounded;
  }

  /** The file at the path and its size, opened where it is not the one that is open. */
  #open(): OpenFile & { bytes: number } {
    const { path } = this.#deps;
    const found = statSync(path, { throwIfNoEntry: false });
    const held = this.#file;
    if (held !== undefined && found?.ino === held.inode && found.dev === held.device) {
      return { ...held, bytes: found.size };
    }
    this.#forgetFile();
    const descriptor = openSync(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK, 0o600);
    const status = fstatSync(descriptor);
    const { dev: device, ino: inode, size } = status;
    this.#file = { descriptor, device, inode, isPipe: status.isFIFO() };
    const last = Buffer.alloc(1);
    this.#isTorn = size > 0 && readSync(descriptor, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
    return { ...this.#file, bytes: size };
  }

  /** A file that cannot be put aside is better too large than without the lines that follow. */
  #isRotated(): boolean {
    try {
      this.#rotate();
      return true;
    } catch (error) {
      this.#deps.onFailed('rotating', error);
      return false;
    }
  }

  #rotate(): void {
    const { path, filesKept } = this.#deps;
    for (let place = filesKept - 1; place >= 1; place -= 1) renameIfPresent(`${path}.${place}`, `${path}.${place + 1}`);
    if (filesKept > 0) renameIfPresent(path, `${path}.1`);
    else rmSync(path, { force: true });
    // Fewer may be kept than before the last start.
    for (let place = filesKept + 1; existsSync(`${path}.${place}`); place += 1) rmSync(`${path}.${place}`);
  }
}

function renameIfPresent(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}
