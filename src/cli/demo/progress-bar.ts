import type { Clock } from '../../lib/clock.ts';
import type { Terminal } from './terminal.ts';

/** A terminal gets a bar that moves, at most so often; a pipe gets one line for every tenth of the way. */
const redrawMs = 80;
const barCells = 32;
const pipeSteps = 10;

/** Shows how far a load of a known number of things has come, and how fast it goes. */
export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #clock: Clock;
  readonly #label: string;
  readonly #total: number;
  readonly #startMs: number;
  #drawnAtMs = Number.NEGATIVE_INFINITY;
  #stepDrawn = 0;

  constructor(terminal: Terminal, clock: Clock, label: string, total: number) {
    this.#terminal = terminal;
    this.#clock = clock;
    this.#label = label;
    this.#total = total;
    this.#startMs = clock.monotonicMs();
  }

  /** `done` things of the total are finished. */
  show(done: number): void {
    const now = this.#clock.monotonicMs();
    const finished = done >= this.#total;
    if (this.#terminal.interactive) {
      if (!finished && now - this.#drawnAtMs < redrawMs) return;
      this.#drawnAtMs = now;
      this.#terminal.write(`\r${this.#line(done, now)}\u001b[K${finished ? '\n' : ''}`);
      return;
    }
    const step = Math.floor((done / this.#total) * pipeSteps);
    if (step === this.#stepDrawn) return;
    this.#stepDrawn = step;
    this.#terminal.write(`${this.#line(done, now)}\n`);
  }

  #line(done: number, nowMs: number): string {
    const seconds = Math.max(0.001, (nowMs - this.#startMs) / 1_000);
    const rate = Math.round(done / seconds).toLocaleString('en-US');
    const count = `${done.toLocaleString('en-US')} of ${this.#total.toLocaleString('en-US')}`;
    const figures = `${count}, ${rate} a second, ${seconds.toFixed(1)} s`;
    if (!this.#terminal.interactive) return `${this.#label}: ${figures}`;
    const full = Math.round((done / this.#total) * barCells);
    return `${this.#label} ${'█'.repeat(full)}${'░'.repeat(barCells - full)} ${figures}`;
  }
}
