import { ServiceError } from '../../protocol/service-error.ts';
import type { Position } from './template-nodes.ts';

/** A template that cannot be used, with the place that is wrong. */
export function templateError({ line, column }: Position, why: string): ServiceError {
  return new ServiceError('invalid_request', `the template cannot be used: line ${line}, column ${column}: ${why}`);
}
