import type { TSchema } from '@sinclair/typebox';
import { didYouMean, memberMeant } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { dropNulls } from '../routing/absent-members.ts';
import type { JsonBody } from '../routing/route.ts';
import { type ForeignMembers, isForeign } from './foreign-members.ts';

/**
 * The JSON body of a route of the inference plane, plain or as gzip; `bytesMax` bounds what it is inflated. `foreign` are members
 * that the schema does not know and that are not ignored.
 */
export function inferenceBody<const Schema extends TSchema>(
  schema: Schema,
  { bytesMax, foreign }: { readonly bytesMax: number; readonly foreign?: ForeignMembers },
): JsonBody<Schema> {
  const prepare = (body: unknown) => prepareBody(body, schema, foreign);
  return { kind: 'json', schema, bytesMax, gzip: true, prepare };
}

/**
 * Drops nulls; a member that the schema does not know is ignored, but one that is nearly the name of a known member is
 * `invalid_request` with that name.
 */
export function prepareBody(body: unknown, schema: TSchema, foreign: ForeignMembers = {}): void {
  dropNulls(body, schema, (name, known, path, value) => {
    if (!isForeign(foreign, name, value)) refuseSlip(name, known, path);
  });
}

/** Below the top, members that clients add to messages and parts are often words of ours; only slips are refused. */
function refuseSlip(name: string, known: readonly string[], path: string): void {
  const likely = path === '' ? memberMeant(name, known) : didYouMean(name, known);
  if (likely === undefined) return;
  const place = `${path}.${name}`.slice(1, 201);
  throw new ServiceError('invalid_request', `unknown member "${place}"; did you mean "${likely}"?`);
}
