import type { TSchema } from '@sinclair/typebox';
import { didYouMean, memberMeant } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { dropNulls } from '../routing/absent-members.ts';
import type { JsonBody } from '../routing/route.ts';

/** The JSON body of a route of the inference plane, plain or as gzip; `bytesMax` bounds what it is inflated. */
export function inferenceBody<const Schema extends TSchema>(
  schema: Schema,
  { bytesMax }: { readonly bytesMax: number },
): JsonBody<Schema> {
  return { kind: 'json', schema, bytesMax, gzip: true, prepare: prepareBody };
}

/**
 * Drops nulls; a member that the schema does not know is ignored, but one that is nearly the name of a known member is
 * `invalid_request` with that name.
 */
export function prepareBody(body: unknown, schema: TSchema): void {
  dropNulls(body, schema, refuseSlip);
}

/** Below the top, members that clients add to messages and parts are often words of ours; only slips are refused. */
function refuseSlip(name: string, known: readonly string[], path: string): void {
  const likely = path === '' ? memberMeant(name, known) : didYouMean(name, known);
  if (likely === undefined) return;
  const place = `${path}.${name}`.slice(1, 201);
  throw new ServiceError('invalid_request', `unknown member "${place}"; did you mean "${likely}"?`);
}
