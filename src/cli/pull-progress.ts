import type { PullEvent } from '../models/download/pull-model.ts';

const barWidth = 30;
const lineEveryPercent = 10;

/** Shows a pull: a bar that grows on a terminal, a line for every tenth elsewhere. */
export class PullProgress {
  readonly #write: (text: string) => void;
  readonly #terminal: boolean;
  /** What is being fetched, shown with its first bytes: a source that does not answer is one line, not two. */
  #file: string | undefined;
  #shownPercent = Number.NEGATIVE_INFINITY;

  constructor(write: (text: string) => void, terminal: boolean) {
    this.#write = write;
    this.#terminal = terminal;
  }

  tell(event: PullEvent): void {
    if (event.type === 'progress') {
      this.#tellFile();
      this.#advance(event.received, event.total);
      return;
    }
    this.#clear();
    if (event.type === 'unreachable') {
      this.#file = undefined;
      this.#write(`${event.host} cannot be reached: ${event.reason}\n`);
      return;
    }
    this.#tellFile();
    if (event.type === 'file') this.#file = `${event.path} (${shownBytes(event.bytes)}) from ${event.from}\n`;
    else if (event.type === 'retry') this.#write(`${event.from}: ${event.reason}; trying again\n`);
    else this.#write(`${event.from} failed: ${event.reason}\n`);
  }

  #tellFile(): void {
    if (this.#file === undefined) return;
    this.#clear();
    this.#write(this.#file);
    this.#file = undefined;
  }

  /** Leaves a clean line behind. */
  end(): void {
    this.#clear();
  }

  #advance(received: number, total: number): void {
    const percent = Math.floor((100 * received) / total);
    const step = this.#terminal ? 1 : lineEveryPercent;
    if (percent < this.#shownPercent + step && percent >= this.#shownPercent) return;
    this.#shownPercent = percent - (percent % step);
    const amount = `${String(percent).padStart(3)} %  ${shownBytes(received)} of ${shownBytes(total)}`;
    if (!this.#terminal) {
      this.#write(`${amount}\n`);
      return;
    }
    const filled = Math.round((barWidth * received) / total);
    this.#write(`\r\u001b[K[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${amount}`);
  }

  #clear(): void {
    if (this.#terminal) this.#write('\r\u001b[K');
  }
}

/** For eyes: `98.4 MB`, `612 B`. */
export function shownBytes(bytes: number): string {
  if (bytes >= 1_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return bytes >= 1_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${bytes} B`;
}
