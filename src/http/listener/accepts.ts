const refusal = /;\s*q=0(?:\.0*)?\s*(?:;|$)/i;

/** Whether an `Accept` header asks for a media type by its name; with a weight of 0 it refuses that one. */
export function accepts(header: string | null, type: RegExp): boolean {
  if (header === null || !type.test(header)) return false;
  return header.split(',').some((range) => type.test(range) && !refusal.test(range));
}
