import { parse, YAMLParseError } from 'yaml';

/**
 * The value of a YAML text; JSON is YAML, too. Throws `SyntaxError` with the place of the fault. A key that is there
 * twice is refused: the section that is left out may be the one that asks for credentials.
 */
export function readYaml(text: string): unknown {
  try {
    return parse(text, { merge: true });
  } catch (error) {
    // Aliases that lead nowhere, or to too much.
    if (error instanceof ReferenceError) throw new SyntaxError(error.message);
    if (!(error instanceof YAMLParseError)) throw error;
    // The lines behind the first are the file's own, which may hold a secret.
    const reason = error.message.split(/:?\n/, 1)[0];
    const advice = error.code === 'DUPLICATE_KEY' ? '; put the members of both together' : '';
    throw new SyntaxError(`${reason}${advice}`);
  }
}
