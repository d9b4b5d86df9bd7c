/** All of some work. Where a part of it fails, the others are told to stop, and the fault of that part is thrown. */
export async function allOrStop<T>(
  outer: AbortSignal,
  begin: (signal: AbortSignal) => readonly Promise<T>[],
): Promise<T[]> {
  const stop = new AbortController();
  try {
    return await Promise.all(begin(AbortSignal.any([outer, stop.signal])));
  } catch (error) {
    stop.abort(error);
    throw error;
  }
}
