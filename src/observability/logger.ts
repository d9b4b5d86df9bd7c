const logLevels = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Facts of a log line in wire spelling; never bodies, document keys, credentials, or URLs that hold them. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The logger of all components. */
export interface Logger {
  /** May be moved while running; shared with every logger made by `component`. */
  level: LogLevel;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields, error?: unknown): void;
  error(message: string, fields?: LogFields, error?: unknown): void;
  /** A logger whose lines name this component. */
  component(name: string): Logger;
}
