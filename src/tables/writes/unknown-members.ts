import { memberMeant } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/**
 * Unknown members are ignored, as the interface asks; but one that is nearly the name of a known member, or a word of it,
 * was meant to do something. It is `invalid_request` with the name that was likely meant.
 */
export function refuseMisspelledMembers(value: object, known: readonly string[], what: string): void {
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    const guess = memberMeant(name, known);
    if (guess === undefined) continue;
    const message = `${what} has no member "${name.slice(0, 64)}". Did you mean "${guess}"?`;
    throw new ServiceError('invalid_request', message);
  }
}
