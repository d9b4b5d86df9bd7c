/** The part of the server's environment that a child process may see: where programs lie, and nothing that may be a secret. */
export function childEnvironment(): Record<string, string> {
  const { PATH, HOME, TMPDIR } = process.env;
  return { ...(PATH && { PATH }), ...(HOME && { HOME }), ...(TMPDIR && { TMPDIR }) };
}

/**
 * The environment of a child that fetches models: everything that tells programs about networks, proxies, certificates and
 * package indexes, but not our own settings, which hold secrets, nor the variables that credentials refer to.
 */
export function downloadEnvironment(credentials: readonly { readonly name: string }[]): Record<string, string> {
  const isHidden = (name: string) => name.startsWith('SUNDEW_') || credentials.some((each) => each.name === name);
  const entries = Object.entries(process.env).filter(([name]) => !isHidden(name));
  return Object.fromEntries(entries.filter((pair): pair is [string, string] => pair[1] !== undefined));
}
