import type { PullEvent } from '../models/download/pull-model.ts';
import { ProgressBar } from './progress-bar.ts';

/** Shows a pull: what is fetched and from where, and how far it has come. */
export class PullProgress {
  readonly #write: (text: string) => void;
  readonly #bar: ProgressBar;
  /** A download is shown with its first bytes: a source that does not answer is one line, not two. */
  #file: string | undefined;

  constructor(write: (text: string) => void, terminal: boolean) {
    this.#write = write;
    this.#bar = new ProgressBar(write, terminal);
  }

  tell(event: PullEvent): void {
    if (event.type === 'progress') {
      this.#tellFile();
      const { received, total } = event;
      this.#bar.show(received, total, `${shownBytes(received)} of ${shownBytes(total)}`);
      return;
    }
    this.#bar.clear();
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
    this.#bar.clear();
    this.#write(this.#file);
    this.#file = undefined;
  }

  /** Leaves a clean line behind. */
  end(): void {
    this.#bar.clear();
  }
}

/** Text for a terminal: `98.4 MB`, `612 B`. */
export function shownBytes(bytes: number): string {
  if (bytes >= 1_000_000) return `${(bytes / 1_000_000).toFixed(1)} MB`;
  return bytes >= 1_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${bytes} B`;
}
