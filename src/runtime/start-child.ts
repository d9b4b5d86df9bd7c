import { ServiceError } from '../protocol/service-error.ts';

/** Errors of a machine, or of a limit, that has no room for one more process now. */
const passing = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']);

/** Starts a child process by `spawn`; `name` is what people call it. Throws `unavailable` where there is no room for it. */
export function startChild<Child>(name: string, spawn: () => Child): Child {
  try {
    return spawn();
  } catch (error) {
    if (!passing.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    throw notStarted(name, error);
  }
}

export function notStarted(name: string, cause?: unknown): ServiceError {
  const advice = 'raise the limits of the server ("ulimit -n", "ulimit -u"), give it memory, or try again later';
  return new ServiceError('unavailable', `${name} cannot be started now; ${advice}`, { cause });
}
