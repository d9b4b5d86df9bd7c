/** Places where a crash test may end the process; the only names that `armFailpoint` takes. */
let armedName: string | undefined;
let passesLeft = 0;

/**
 * Arms one failpoint of this thread: `name`, or `name:N` to let the first N passes through. `undefined` disarms.
 * The value comes from configuration; every thread is armed by itself.
 */
export function armFailpoint(specification: string | undefined): void {
  const colon = specification?.lastIndexOf(':') ?? -1;
  armedName = colon === -1 ? specification : specification?.slice(0, colon);
  passesLeft = colon === -1 ? 0 : Number(specification?.slice(colon + 1));
  if (!Number.isInteger(passesLeft) || passesLeft < 0) {
    throw new RangeError(`failpoint "${specification}": the number after the colon counts passes to let through`);
  }
}

/** Ends the process with SIGKILL when this place is armed; nothing otherwise. */
export function failpoint(name: string): void {
  if (armedName === undefined || armedName !== name) return;
  if (passesLeft > 0) {
    passesLeft -= 1;
    return;
  }
  process.kill(process.pid, 'SIGKILL');
}
