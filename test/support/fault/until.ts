/** Awaits a state of another process: asks again until it holds. @throws after `deadlineMs`. */
export async function until(holds: () => Promise<boolean>, deadlineMs = 60_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error('what was waited for did not come');
    await Bun.sleep(20);
  }
}
