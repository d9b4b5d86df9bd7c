import type { Clock } from '../lib/clock.ts';
import type { LogFields, Logger, LogLevel } from './logger.ts';

const rank: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

interface LineLoggerOptions {
  readonly level: LogLevel;
  /** `json`: one object a line; `text`: for a terminal. */
  readonly format: 'json' | 'text';
  readonly clock: Clock;
  /** Takes one whole line with its line feed; returns false where it is lost. */
  readonly write: (line: string) => unknown;
}

/** A logger that writes one line per event, at once: what was logged before a crash is there after it. */
export function createLogger(options: LineLoggerOptions): Logger {
  return new LineLogger(options, { level: options.level, lost: 0 }, undefined);
}

class LineLogger implements Logger {
  readonly #options: LineLoggerOptions;
  readonly #shared: { level: LogLevel; lost: number };
  readonly #component: string | undefined;

  constructor(options: LineLoggerOptions, shared: { level: LogLevel; lost: number }, component: string | undefined) {
    this.#options = options;
    this.#shared = shared;
    this.#component = component;
  }

  get level(): LogLevel {
    return this.#shared.level;
  }

  set level(level: LogLevel) {
    this.#shared.level = level;
  }

  debug(message: string, fields?: LogFields): void {
    this.#log('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#log('info', message, fields);
  }

  warn(message: string, fields?: LogFields, error?: unknown): void {
    this.#log('warn', message, fields, error);
  }

  error(message: string, fields?: LogFields, error?: unknown): void {
    this.#log('error', message, fields, error);
  }

  component(name: string): Logger {
    return new LineLogger(this.#options, this.#shared, name);
  }

  #log(level: LogLevel, message: string, fields: LogFields | undefined, error?: unknown): void {
    if (rank[level] < rank[this.#shared.level]) return;
    const ts = new Date(this.#options.clock.nowMs()).toISOString();
    const facts = { component: this.#component, ...fields, ...(error === undefined ? {} : { err: errorFacts(error) }) };
    const line =
      this.#options.format === 'json'
        ? JSON.stringify({ ts, level, msg: message, ...facts })
        : `${ts} ${level.toUpperCase().padEnd(5)} ${message}${textFacts(facts)}`;
    if (this.#options.write(`${line}\n`) === false) {
      this.#shared.lost += 1;
    } else if (this.#shared.lost > 0) {
      const { lost } = this.#shared;
      this.#shared.lost = 0;
      // Where errors alone are logged, errors are what is lost.
      const told = this.level === 'error' ? 'error' : 'warn';
      this.#log(told, 'lines before the last one are lost, because nothing took them', { lost });
    }
  }
}

interface ErrorFacts {
  readonly code?: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly cause?: ErrorFacts;
}

function errorFacts(error: unknown, depth = 0): ErrorFacts {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const cause = error.cause !== undefined && depth < 4 ? { cause: errorFacts(error.cause, depth + 1) } : {};
  return { ...code, message: error.message, stack: error.stack, ...cause };
}

function textFacts(facts: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const [name, value] of Object.entries(facts)) {
    if (value === undefined) continue;
    if (name === 'err') text += `\n  ${(facts.err as ErrorFacts).stack ?? (facts.err as ErrorFacts).message}`;
    else text += ` ${name}=${typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)}`;
  }
  return text;
}
