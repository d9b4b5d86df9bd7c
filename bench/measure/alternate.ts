/** A side of a measurement: does its work once and returns what it measured. */
export type Side<Measured> = () => Promise<Measured>;

/**
 * Runs the sides in turn, `pairs` times: A B C, A B C, ... so that a machine that slows down slows all of them. The result
 * holds one list per side, in the order of the pairs. `between` runs before every turn (settle, collect garbage).
 */
export async function alternate<const Sides extends Record<string, Side<unknown>>>(
  sides: Sides,
  pairs: number,
  between: () => Promise<void> = async () => {},
): Promise<{ [Name in keyof Sides]: Awaited<ReturnType<Sides[Name]>>[] }> {
  if (pairs < 1) throw new RangeError('at least one pair');
  const names = Object.keys(sides);
  const results: Record<string, unknown[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let pair = 0; pair < pairs; pair += 1) {
    for (const name of names) {
      await between();
      results[name]?.push(await sides[name]?.());
    }
  }
  return results as { [Name in keyof Sides]: Awaited<ReturnType<Sides[Name]>>[] };
}
