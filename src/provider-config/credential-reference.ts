/** Where the value of a credential is kept: a variable of the environment, or the secret store. */
type CredentialReference =
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'secret'; readonly name: string };

const variableForm = /^\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}$/;
const secretForm = /^\$\{secret:([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})\}$/;

/**
 * Reads `${NAME}` and `${secret:name}`, which must be the whole value. `undefined` for a credential that is written out;
 * `malformed` for a value with `${` in it that is neither.
 */
export function readCredentialReference(value: string): CredentialReference | 'malformed' | undefined {
  const secret = secretForm.exec(value)?.[1];
  if (secret !== undefined) return { kind: 'secret', name: secret };
  const variable = variableForm.exec(value)?.[1];
  if (variable !== undefined) return { kind: 'variable', name: variable };
  return value.includes('${') ? 'malformed' : undefined;
}
