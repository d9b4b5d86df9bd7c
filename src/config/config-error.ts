/** A sentence for whoever wrote the configuration. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Whether it is a `ConfigError`, of this bundle or of the one that is loaded later. */
export function isConfigError(thrown: unknown): thrown is ConfigError {
  return thrown instanceof Error && thrown.name === 'ConfigError';
}
