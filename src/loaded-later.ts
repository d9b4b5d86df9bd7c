import type { Verb } from './cli/verb.ts';
import { pause, systemClock } from './lib/clock.ts';
import type { StartServer } from './server/running-server.ts';
import { startWriterThread } from './storage/writer/writer-thread.ts';

// A bundle of its own, which `main.ts` reads once its port is open. A class that is in both bundles is two classes, so
// `instanceof` is false for an object that the other bundle made: errors that cross are told by their names.

const loadPauseMs = 2;
/** Milliseconds that loading holds the event loop before it yields. */
const heldMsMax = 4;

/**
 * Loads the server, and yields to the event loop after each piece that held it for long, so that probes are answered. The
 * thread that writes starts on another core meanwhile.
 */
export async function loadServer(): Promise<StartServer> {
  const writer = startWriterThread();
  const pieces = [
    () => import('@sinclair/typebox'),
    () => import('@sinclair/typebox/compiler'),
    () => import('./engine/json-scan.ts'),
    () => import('./http/routing/start-routes.ts'),
    () => import('./query/query-service.ts'),
    () => import('./server/start-server.ts'),
  ];
  // The bundle itself was the first piece.
  let heldSinceMs = Number.NEGATIVE_INFINITY;
  for (const load of pieces) {
    if (systemClock.monotonicMs() - heldSinceMs > heldMsMax) {
      await pause(systemClock, loadPauseMs);
      heldSinceMs = systemClock.monotonicMs();
    }
    await load();
  }
  await pause(systemClock, loadPauseMs);
  const { startServer } = await import('./server/start-server.ts');
  return (start) => startServer({ ...start, writer });
}

/** The verb `inference`, whose server is loaded when it starts. */
export async function loadInferenceVerb(): Promise<Verb> {
  const { inferenceVerb } = await import('./cli/inference.ts');
  return inferenceVerb(async () => (await import('./server/start-inference-server.ts')).startInferenceServer);
}
