import { yieldToEventLoop } from './yield-to-event-loop.ts';

/**
 * Turns of loops that hold the event loop for a moment each. However many loops there are, others wait for one turn: the event loop
 * runs once between two of them.
 */
export class Turns {
  #next: Promise<void> = Promise.resolve();

  /** Resolves when it is the caller's turn, in the order of calls. What the caller then does before it waits again is its turn. */
  next(): Promise<void> {
    const turn = this.#next;
    this.#next = turn.then(yieldToEventLoop);
    return turn;
  }
}
