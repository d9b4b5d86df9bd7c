const barWidth = 30;
const lineEveryPercent = 10;

/** How far something has come: one line that is redrawn at every percent on a terminal, a line for every tenth elsewhere. */
export class ProgressBar {
  readonly #write: (text: string) => void;
  readonly #isTerminal: boolean;
  #shownPercent = Number.NEGATIVE_INFINITY;

  constructor(write: (text: string) => void, isTerminal: boolean) {
    this.#write = write;
    this.#isTerminal = isTerminal;
  }

  /** `figures` stand behind the percentage. Less than was shown before begins another run. */
  show(done: number, total: number, figures: string): void {
    const percent = Math.floor((100 * done) / total);
    const step = this.#isTerminal ? 1 : lineEveryPercent;
    if (percent < this.#shownPercent + step && percent >= this.#shownPercent) return;
    this.#shownPercent = percent - (percent % step);
    const amount = `${String(percent).padStart(3)} %  ${figures}`;
    if (!this.#isTerminal) {
      this.#write(`${amount}\n`);
      return;
    }
    const filled = Math.round((barWidth * done) / total);
    this.clear();
    this.#write(`[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${amount}`);
  }

  /** Takes the bar off a terminal. */
  clear(): void {
    if (this.#isTerminal) this.#write('\r\u001b[K');
  }

  /** Leaves the bar on a terminal and goes on below it. */
  finish(): void {
    if (this.#isTerminal) this.#write('\n');
  }
}

/** `12,000 documents, 3,400 a second` */
export function shownRate(done: number, things: string, elapsedMs: number): string {
  const rate = Math.round(done / Math.max(0.001, elapsedMs / 1_000));
  return `${done.toLocaleString('en-US')} ${things}, ${rate.toLocaleString('en-US')} a second`;
}
