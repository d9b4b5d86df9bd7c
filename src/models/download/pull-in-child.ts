import type { Clock } from '../../lib/clock.ts';
import { entryFile } from '../../runtime/entry-file.ts';
import { startChild } from '../../runtime/start-child.ts';
import type { PullEntry, PullEvent } from './pull-model.ts';

/** The download of a child process. Plain data. */
export interface PullOrder {
  readonly entry: PullEntry;
  readonly modelsDirectory: string;
  readonly hubUrl: string;
  readonly packageIndex: string;
}

/** A message of a child. */
export type FromPullChild =
  | { readonly type: 'event'; readonly event: PullEvent }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly reason: string };

interface PullInChildOptions {
  /** All variables that the child sees. */
  readonly environment: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: PullEvent) => void;
}

/** How long a process may take to clean up behind itself, in milliseconds. */
const stopGraceMs = 2_000;
const childFile = entryFile(new URL('./pull-child.ts', import.meta.url));

/**
 * Fetches a model in a process of its own: unpacking and hashing hundreds of megabytes would hold up everything else
 * here. Aborting ends it; what has arrived is kept. Throws an Error with the reason.
 */
export async function pullInChild(
  order: PullOrder,
  { environment, clock, signal, onEvent }: PullInChildOptions,
): Promise<void> {
  let last: Exclude<FromPullChild, { type: 'event' }> | undefined;
  const child = startChild('a process that fetches a model', () =>
    Bun.spawn([process.execPath, childFile], {
      ipc(message: FromPullChild) {
        if (message.type === 'event') onEvent?.(message.event);
        else last = message;
      },
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore'],
      env: { ...environment },
    }),
  );
  let cancelKill: (() => void) | undefined;
  const stop = () => {
    child.kill('SIGTERM');
    cancelKill = clock.after(stopGraceMs, () => child.kill('SIGKILL'));
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  child.send(order);
  await child.exited;
  signal?.removeEventListener('abort', stop);
  cancelKill?.();
  // Assigned by messages, which the compiler does not follow.
  const answer = last as Exclude<FromPullChild, { type: 'event' }> | undefined;
  if (answer?.type === 'done') return;
  throw new Error(answer?.reason ?? `the process that fetched it ended with ${child.signalCode ?? child.exitCode}`);
}
