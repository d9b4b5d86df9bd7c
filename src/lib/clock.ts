/** Time as everything of ours sees it; tests pass a clock that they move by hand. */
export interface Clock {
  /** Wall time, milliseconds since 1970. May jump. */
  nowMs(): number;
  /** Monotonic time in milliseconds; only differences mean something. */
  monotonicMs(): number;
  /** Runs `callback` once after `delayMs`; the returned function cancels it. A waiting timer never keeps the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

/** The longest delay of one timer of the runtime, nearly 25 days. A timer with a longer one fires at once. */
const timerMsMax = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs, callback) => startTimer(delayMs, callback, (timer) => timer.unref()),
};

/** For a command that ends with its work: a waiting timer keeps the process alive. */
export const commandClock: Clock = {
  ...systemClock,
  after: (delayMs, callback) => startTimer(delayMs, callback),
};

/** A delay above that of one timer is waited for by several, one after the other. */
function startTimer(
  delayMs: number,
  callback: () => void,
  onStarted: (timer: NodeJS.Timeout) => void = () => undefined,
): () => void {
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number) => {
    const next = leftMs > timerMsMax ? () => wait(leftMs - timerMsMax) : callback;
    timer = setTimeout(next, Math.min(leftMs, timerMsMax));
    onStarted(timer);
  };
  wait(delayMs);
  return () => clearTimeout(timer);
}

/** A promise that settles after `delayMs`, or at once when the signal is or becomes aborted. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = () => {
      cancel();
      signal?.removeEventListener('abort', finish);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    signal?.addEventListener('abort', finish, { once: true });
  });
}

/** Whether the work settles within `delayMs`. It goes on when it does not; what it throws before that is thrown. */
export async function within(clock: Clock, delayMs: number, work: Promise<unknown>): Promise<boolean> {
  const finished = new AbortController();
  const done = work.then(() => true).finally(() => finished.abort());
  const late = pause(clock, delayMs, finished.signal).then(() => false);
  return Promise.race([done, late]);
}
