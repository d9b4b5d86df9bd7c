import type { Verb } from './cli/verb.ts';
import { pause, systemClock } from './lib/clock.ts';
import type { StartServer } from './server/running-server.ts';
import { startWriterThread } from './storage/writer/writer-thread.ts';

// A bundle of its own, which `main.ts` reads once its port is open. A class that is in both bundles is two classes, so
// `instanceof` is false for an object that the other bundle made: errors that cross are told by their names.

const loadPauseMs = 2;

/**
 * Loads the server; the thread that writes starts on another core meanwhile. Reading this bundle has held the event
 * loop for long, so probes are answered first.
 */
export async function loadServer(): Promise<StartServer> {
  const writer = startWriterThread();
  await pause(systemClock, loadPauseMs);
  const { startServer } = await import('./server/start-server.ts');
  return (start) => startServer({ ...start, writer });
}

/** The verb `inference`, whose server is loaded when it starts. */
export async function loadInferenceVerb(): Promise<Verb> {
  const { inferenceVerb } = await import('./cli/inference.ts');
  return inferenceVerb(async () => (await import('./server/start-inference-server.ts')).startInferenceServer);
}
