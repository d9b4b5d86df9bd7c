/** Where programs and libraries lie, and which GPUs are used and how: nothing that may be a secret. */
const childVariables = /^(PATH|HOME|TMPDIR|LD_LIBRARY_PATH|(CUDA|GGML|VK)_[A-Z0-9_]+)$/;

/** The part of the server's environment that a child process may see. */
export function childEnvironment(environment: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return variables(environment, (name) => childVariables.test(name));
}

/**
 * The environment of a child that fetches models: everything that tells programs about networks, proxies, certificates and
 * package indexes, but not our own settings, which hold secrets, nor the variables that credentials refer to.
 */
export function downloadEnvironment(credentials: readonly { readonly name: string }[]): Record<string, string> {
  const isHidden = (name: string) => name.startsWith('SUNDEW_') || credentials.some((each) => each.name === name);
  return variables(process.env, (name) => !isHidden(name));
}

function variables(environment: NodeJS.ProcessEnv, wanted: (name: string) => boolean): Record<string, string> {
  const entries = Object.entries(environment).filter(([name]) => wanted(name));
  return Object.fromEntries(entries.filter((pair): pair is [string, string] => pair[1] !== undefined));
}
