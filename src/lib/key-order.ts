/**
 * Order of document keys: by the bytes of their UTF-8 form, which is the order of their code points. JavaScript's own
 * string order differs from it where surrogates meet the characters U+E000 to U+FFFF.
 */
export function compareKeys(left: string, right: string): -1 | 0 | 1 {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a !== b) return rank(a) < rank(b) ? -1 : 1;
  }
  if (left.length === right.length) return 0;
  return left.length < right.length ? -1 : 1;
}

/** Moves surrogates behind all other code units, keeping the order within each group. */
function rank(codeUnit: number): number {
  if (codeUnit < 0xd800) return codeUnit;
  return codeUnit >= 0xe000 ? codeUnit - 0x800 : codeUnit + 0x2000;
}
