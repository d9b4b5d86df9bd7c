/** Starts a worker thread; `entry` comes from `new URL('./name.worker.ts', import.meta.url)`. */
export function startWorker(entry: URL, name: string): Worker {
  return new Worker(entry.href, { name });
}
