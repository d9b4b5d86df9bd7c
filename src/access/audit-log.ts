import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs';
import type { Clock } from '../lib/clock.ts';
import { minuteMs } from '../lib/units.ts';

/** One request, as the audit log has it. Members that are undefined are left out. */
export interface AuditEntry {
  readonly request_id: string;
  /** Empty for who was not identified. */
  readonly user: string;
  readonly key_id?: string | undefined;
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
  /** Told of the first line of a row of lines that could not be written. */
  readonly onFailed: (error: unknown) => void;
}

/** Requests of strangers that are written in a minute; anybody can send them. */
const strangersPerMinute = 60;

/**
 * Records of who did what, as JSON lines in a file of its own that only the owner may read. A line is handed to the system before
 * its request is answered, so it outlives a kill of the process. A line that cannot be written fails no request; the next one
 * tells by `lost` how many there were.
 */
export class AuditLog {
  readonly #deps: Deps;
  #descriptor: number | undefined;
  #bytes = 0;
  #minuteStartMs = Number.NEGATIVE_INFINITY;
  #strangers = 0;
  #suppressed = 0;
  #lost = 0;
  /** The file ends within a line: the disk was full, or the machine went down. */
  #isTorn = false;

  /** Throws when the file cannot be opened. */
  constructor(deps: Deps) {
    this.#deps = deps;
    this.#open();
  }

  /** A stranger has given no credential that is valid: such lines are bounded. */
  record(entry: AuditEntry, { isStranger = false } = {}): void {
    const { clock, onFailed } = this.#deps;
    if (isStranger && this.#isSuppressed(clock.monotonicMs())) return;
    const counts = {
      ...(this.#suppressed > 0 ? { suppressed: this.#suppressed } : {}),
      ...(this.#lost > 0 ? { lost: this.#lost } : {}),
    };
    const line = `${JSON.stringify({ ts: new Date(clock.nowMs()).toISOString(), ...entry, ...counts })}\n`;
    try {
      this.#write(line);
      this.#suppressed = 0;
      this.#lost = 0;
    } catch (error) {
      if (this.#lost === 0) onFailed(error);
      this.#lost += 1;
      this.#forgetFile();
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** The next line looks at what the file has become. */
  #forgetFile(): void {
    try {
      this.close();
    } catch {
      // The descriptor is gone all the same.
    }
    this.#descriptor = undefined;
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

  #write(line: string): void {
    this.#open();
    if (this.#bytes > 0 && this.#bytes + Buffer.byteLength(line) > this.#deps.fileBytesMax) this.#rotate();
    const descriptor = this.#open();
    const bytes = Buffer.from(this.#isTorn ? `\n${line}` : line);
    this.#bytes += bytes.length;
    const written = writeSync(descriptor, bytes);
    if (written < bytes.length) throw new Error('the audit log took only a part of a line');
    this.#isTorn = false;
  }

  #open(): number {
    if (this.#descriptor === undefined) {
      this.#descriptor = openSync(this.#deps.path, 'a+', 0o600);
      this.#bytes = fstatSync(this.#descriptor).size;
      const last = Buffer.alloc(1);
      this.#isTorn =
        this.#bytes > 0 && readSync(this.#descriptor, last, 0, 1, this.#bytes - 1) === 1 && last[0] !== 0x0a;
    }
    return this.#descriptor;
  }

  #rotate(): void {
    const { path, filesKept } = this.#deps;
    this.close();
    rmSync(`${path}.${filesKept}`, { force: true });
    for (let place = filesKept - 1; place >= 1; place -= 1) renameIfPresent(`${path}.${place}`, `${path}.${place + 1}`);
    if (filesKept > 0) renameIfPresent(path, `${path}.1`);
    else rmSync(path, { force: true });
    this.#open();
  }
}

function renameIfPresent(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
}
