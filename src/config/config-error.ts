/** A sentence for whoever wrote the configuration. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}
