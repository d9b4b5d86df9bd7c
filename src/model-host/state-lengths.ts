/** Most conversations are shorter; a longer state is opened when one is not. */
const firstTokens = 512;
const growth = 4;

/** Tokens of the states that a generator opens, shortest first; the last one has all that a generation may span. */
export function stateLengths(contextTokens: number): readonly [shortest: number, ...longer: number[]] {
  const lengths: number[] = [];
  for (let length = firstTokens; length < contextTokens; length *= growth) lengths.push(length);
  const [shortest = contextTokens, ...longer] = [...lengths, contextTokens];
  return [shortest, ...longer];
}
