import type { PullEntry, PullEvent } from './pull-model.ts';

/** What a child is told to fetch. Plain data. */
export interface PullOrder {
  readonly entry: PullEntry;
  readonly modelsDirectory: string;
  readonly hubUrl: string;
}

/** What a child tells. */
export type FromPullChild =
  | { readonly type: 'event'; readonly event: PullEvent }
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly reason: string };

interface PullInChildOptions {
  /** All variables that the child sees. */
  readonly environment: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: PullEvent) => void;
}

const entryFile = new URL('./pull-child.ts', import.meta.url).pathname;

/**
 * Fetches a model in a process of its own: unpacking and hashing hundreds of megabytes would hold up everything else
 * here. Aborting ends the process; what has arrived is kept. Throws an Error with the reason.
 */
export async function pullInChild(
  order: PullOrder,
  { environment, signal, onEvent }: PullInChildOptions,
): Promise<void> {
  let last: Exclude<FromPullChild, { type: 'event' }> | undefined;
  const child = Bun.spawn([process.execPath, entryFile], {
    ipc(message: FromPullChild) {
      if (message.type === 'event') onEvent?.(message.event);
      else last = message;
    },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore'],
    env: { ...environment },
    ...(signal === undefined ? {} : { signal }),
  });
  child.send(order);
  await child.exited;
  // Assigned by messages, which the compiler does not follow.
  const answer = last as Exclude<FromPullChild, { type: 'event' }> | undefined;
  if (answer?.type === 'done') return;
  throw new Error(answer?.reason ?? `the process that fetched it ended with ${child.signalCode ?? child.exitCode}`);
}
