import { type Backoff, backoffMs } from '../backoff.ts';
import { type Clock, pause } from '../clock.ts';

/** Work that goes on beside requests until its signal is aborted, or until it has nothing more to do. */
export interface Service {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}

const restarts: Backoff = { firstMs: 1_000, maxMs: 60_000 };

/**
 * Runs a service, and runs it again after a pause when it throws: a fault in one pass must not end upkeep for the life of
 * the process. Resolves when the service has ended by itself or its signal is aborted. `onFailed` hears of each failure.
 */
export async function supervise(
  service: Service,
  parts: { clock: Clock; signal: AbortSignal; onFailed(name: string, error: unknown, attempt: number): void },
): Promise<void> {
  const { clock, signal, onFailed } = parts;
  for (let attempt = 1; !signal.aborted; attempt += 1) {
    const startedMs = clock.monotonicMs();
    try {
      return await service.run(signal);
    } catch (error) {
      if (signal.aborted) return;
      // A service that ran for long before it failed begins with the shortest pause again.
      if (clock.monotonicMs() - startedMs > restarts.maxMs) attempt = 1;
      onFailed(service.name, error, attempt);
    }
    await pause(clock, backoffMs(attempt, restarts), signal);
  }
}
