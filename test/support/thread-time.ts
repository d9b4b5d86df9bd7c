/** CPU time of this thread in milliseconds: a busy machine adds nothing to it. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
