/** Threads for one shape of work. */
export interface ShapeThreads {
  readonly count: number;
  /** The time of one of its tokens on one thread, in milliseconds. */
  readonly singleMs: number;
}

interface ThreadShapes {
  /** One token. */
  readonly decode: ShapeThreads;
  /** A token of each of several sequences. */
  readonly parallel: ShapeThreads;
  /** A piece of a prompt. */
  readonly prefill: ShapeThreads;
}

type ShapeName = keyof ThreadShapes;

/** A batch of this many tokens is a piece of a prompt rather than tokens of several outputs. */
const prefillTokensMin = 24;
/** Slower than one thread by this, several threads wait for cores that others use. */
const crowdedFactor = 1.5;
/** Batches on one thread before several are tried again. */
const restBatches = 64;

/**
 * How many threads the next batch gets. Threads that work on one batch wait for one another at every step of it: when
 * one of them loses its core to somebody else, all stand still. So several are used only while they are faster than one.
 */
export class Threads {
  readonly shapes: ThreadShapes;
  readonly #rest: Record<ShapeName, number> = { decode: 0, parallel: 0, prefill: 0 };

  constructor(shapes: ThreadShapes) {
    this.shapes = shapes;
  }

  /** The same for every batch, whatever it takes. */
  static fixed(count: number): Threads {
    const shape = { count, singleMs: Number.POSITIVE_INFINITY };
    return new Threads({ decode: shape, parallel: shape, prefill: shape });
  }

  for(tokens: number): number {
    const shape = shapeOf(tokens);
    return this.#rest[shape] > 0 ? 1 : this.shapes[shape].count;
  }

  /** Says how long a batch took. */
  took(tokens: number, ms: number): void {
    const shape = shapeOf(tokens);
    if (this.#rest[shape] > 0) this.#rest[shape] -= 1;
    else if (this.shapes[shape].count > 1 && ms > this.shapes[shape].singleMs * tokens * crowdedFactor) {
      this.#rest[shape] = restBatches;
    }
  }
}

function shapeOf(tokens: number): ShapeName {
  if (tokens === 1) return 'decode';
  return tokens < prefillTokensMin ? 'parallel' : 'prefill';
}
