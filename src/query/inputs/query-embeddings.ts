import type { LRUCache } from 'lru-cache';
import { serverCaller } from '../../access/principal.ts';
import type { SparseVector } from '../../inference/embeddings/embed-items.ts';
import type { MediaReference } from '../../inference/media/media-reference.ts';
import type { Embedder } from '../../inference/providers/embedder.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import { expiringCache } from '../../runtime/expiring-cache.ts';

export type QueryVector = Float32Array | SparseVector;

/** The input of a query's embedding: a text, or an image that its template names. */
export type QuerySource = string | MediaReference;

interface QueryEmbeddingsDeps {
  /** The embedder of a configuration. */
  embedder(config: ProviderConfig): Embedder;
  clock: Clock;
  keptMs: number;
  bytesMax: number;
}

/** One embedding under way, which every query of the same text waits for. */
interface Flight {
  vector: Promise<QueryVector>;
  waiting: number;
  stop: AbortController;
}

const task = 'RETRIEVAL_QUERY';

/**
 * The vectors of the texts that queries search by. Each text is embedded once for a provider and model, however many
 * queries want it at the same time, and kept for a while. It is work that somebody waits for, and what the table's
 * embedder makes for whoever may read the table: it needs no grant for inference.
 */
export class QueryEmbeddings {
  readonly #deps: QueryEmbeddingsDeps;
  readonly #known: LRUCache<string, QueryVector>;
  readonly #flights = new Map<string, Flight>();

  constructor(deps: QueryEmbeddingsDeps) {
    this.#deps = deps;
    const { clock, keptMs, bytesMax } = deps;
    this.#known = expiringCache({ clock, keptMs, max: bytesMax, sizeOf: bytesOf });
  }

  /** Throws what the embedder throws, and the reason of the signal. A text that failed is embedded again when it is asked for. */
  async embed(config: ProviderConfig, text: QuerySource, requestId: string, signal: AbortSignal): Promise<QueryVector> {
    const embedder = this.#deps.embedder(config);
    // The same model at another address need not be the same.
    const place = [embedder.fingerprint, config.url ?? '', config.region ?? '', task, text];
    const key = new Bun.CryptoHasher('sha256').update(JSON.stringify(place)).digest('base64');
    const known = this.#known.get(key);
    if (known) return known;
    return this.#join(key, signal, (shared) => embedOne(embedder, text, requestId, shared));
  }

  /** Waits for the flight of a key. It is ended when nobody waits for it any more. */
  async #join(
    key: string,
    signal: AbortSignal,
    start: (shared: AbortSignal) => Promise<QueryVector>,
  ): Promise<QueryVector> {
    signal.throwIfAborted();
    const flight = this.#flights.get(key) ?? this.#begin(key, start);
    flight.waiting += 1;
    const left = Promise.withResolvers<never>();
    const leave = () => left.reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([flight.vector, left.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      flight.waiting -= 1;
      if (flight.waiting === 0) flight.stop.abort();
    }
  }

  #begin(key: string, start: (shared: AbortSignal) => Promise<QueryVector>): Flight {
    const stop = new AbortController();
    const end = () => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    };
    // A caller that comes after all others have left begins again.
    stop.signal.addEventListener('abort', end, { once: true });
    const vector = start(stop.signal).then((made) => {
      this.#known.set(key, made);
      return made;
    });
    const flight: Flight = { vector, waiting: 0, stop };
    this.#flights.set(key, flight);
    vector.then(end, end);
    return flight;
  }
}

async function embedOne(
  embedder: Embedder,
  text: QuerySource,
  requestId: string,
  signal: AbortSignal,
): Promise<QueryVector> {
  const call = { caller: serverCaller(requestId, signal), signal, priority: 'foreground' } as const;
  const { vectors, faults } = await embedder.embed([text], task, call);
  const [vector] = vectors;
  if (vector === undefined) throw must(faults[0], 'a text without a vector has a fault').error;
  return vector;
}

function bytesOf(vector: QueryVector): number {
  const bytes =
    vector instanceof Float32Array ? vector.byteLength : vector.indices.byteLength + vector.values.byteLength;
  return bytes + 256;
}
