import { ServiceError } from './service-error.ts';

/** Characters (code points), of tables as of indexes. */
export const nameCharsMax = 255;

/** Letters, marks and digits of any script, and `_ - .`; the first is a letter or a digit. */
const allowed = /^[\p{L}\p{Nd}][\p{L}\p{M}\p{Nd}_.-]*$/u;

/** The name when it may be one, else `invalid_name`. */
export function checkTableName(name: string): string {
  return checkName(name, 'table');
}

/** The name when it may be one, else `invalid_name`. */
export function checkIndexName(name: string): string {
  return checkName(name, 'index');
}

/**
 * An allow-list in normal form C: what looks like a path (`..`, `/`), is reserved (a leading `_`), or is spelled in two
 * ways is refused, so that a name is one thing in a URL, in a file system and in a log.
 */
function checkName(name: string, kind: string): string {
  const fail = (reason: string): never => {
    throw new ServiceError(
      'invalid_name',
      `${quoted(name)} cannot be the name of ${kind === 'index' ? 'an index' : `a ${kind}`}: ${reason}`,
    );
  };
  if (name.length === 0) fail('it is empty');
  if (name.length > 2 * nameCharsMax || [...name].length > nameCharsMax)
    fail(`it is longer than ${nameCharsMax} characters`);
  if (name.includes('..')) fail('it has two dots in a row');
  if (!allowed.test(name)) fail('letters, digits, "_", "-" and "." are allowed, and the first is a letter or a digit');
  if (name.normalize('NFC') !== name) fail('it is not in Unicode normal form C');
  return name;
}

function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}...` : name);
}
