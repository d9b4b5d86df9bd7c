import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';

/** A bare path is one from the root. Throws `invalid_request`. */
export function rootedPath(field: string): string {
  const path = field.startsWith('$') ? field : `$.${field}`;
  const names = path.slice(2).split('.');
  if (!path.startsWith('$.') || names.some((name) => name === '' || /[[\]*?'"]/.test(name))) {
    throw refused('"field" must be a path of member names, such as "title" or "$.author.name"');
  }
  if (path.length > limits.fieldPathCharsMax) {
    throw refused(`"field" may have ${limits.fieldPathCharsMax} characters at most`);
  }
  return path;
}

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message);
}
