import { checkPassword } from '../../access/authentication/passwords.ts';
import { ConfigError } from '../../config/config-error.ts';
import { textOf } from '../client/client-verb.ts';
import type { VerbContext } from '../verb.ts';

const variable = 'SUNDEW_PASSWORD';

export const passwordFlag = {
  flag: '--password-file',
  value: 'FILE',
  of: ['users create', 'users password'],
  help: `A file with the password, /dev/stdin for what another program writes; else the variable ${variable}.`,
};

/**
 * The password, which is never a word of the command line: other users of the machine see those. Throws `ConfigError` where
 * there is none, and a `ServiceError` for one that cannot be taken.
 */
export function passwordOf({ args, environment }: VerbContext): string {
  const file = args.flags.get(passwordFlag.flag);
  const password = file === undefined ? environment[variable] : textOf(file).replace(/\r?\n$/, '');
  if (password === undefined) {
    throw new ConfigError(`give the password in a file, by ${passwordFlag.flag}, or in the variable ${variable}`);
  }
  checkPassword(password);
  return password;
}
