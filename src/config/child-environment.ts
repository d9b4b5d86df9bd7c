/** What a child process may see of the server's environment: where programs lie, and nothing that may be a secret. */
export function childEnvironment(): Record<string, string> {
  const { PATH, HOME, TMPDIR } = process.env;
  return { ...(PATH && { PATH }), ...(HOME && { HOME }), ...(TMPDIR && { TMPDIR }) };
}
