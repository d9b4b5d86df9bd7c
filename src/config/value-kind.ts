import { formatDuration, parseDuration } from '../lib/duration.ts';

/** How one kind of option is read from text or from a file's value, written, and described. */
export interface ValueKind<T> {
  /** In the documentation and in messages. */
  readonly name: string;
  /** Throws an Error whose message completes "must be ...". */
  read(raw: unknown): T;
  write(value: T): string;
}

function bad(expectation: string): never {
  throw new Error(expectation);
}

export function text(name: 'string' | 'path' = 'string'): ValueKind<string> {
  return {
    name,
    read: (raw) => (typeof raw === 'string' && raw !== '' ? raw : bad('a text that is not empty')),
    write: (value) => value,
  };
}

/** A name or an address; one of IPv6 may stand in brackets, as in a URL. */
export function host(): ValueKind<string> {
  const plain = text();
  return { ...plain, read: (raw) => plain.read(raw).replace(/^\[(.+)\]$/, '$1') };
}

/** An http or https address without name and password, or the word that stands for none where there is one. */
export function webAddress(none?: string): ValueKind<string> {
  return {
    name: 'address',
    read(raw) {
      const url = typeof raw === 'string' && /^https?:/.test(raw) ? URL.parse(raw) : null;
      const plain = url !== null && url.username === '' && url.password === '';
      const orNone = none === undefined ? '' : `, or ${none}`;
      return (none !== undefined && raw === none) || plain
        ? String(raw)
        : bad(`an http or https address without credentials${orNone}`);
    },
    write: (value) => value,
  };
}

export function integer(min: number, max: number): ValueKind<number> {
  return {
    name: 'integer',
    read(raw) {
      const value = typeof raw === 'string' && /^\d{1,16}$/.test(raw) ? Number(raw) : raw;
      if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
        return bad(`a whole number from ${min} to ${max}`);
      }
      return value;
    },
    write: String,
  };
}

/** Milliseconds, written as `30s`, `5m`, `1h30m`. */
export function duration(minMs: number, maxMs: number): ValueKind<number> {
  return {
    name: 'duration',
    read(raw) {
      const range = `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, such as 30s, 5m or 1h30m`;
      if (typeof raw !== 'string') return bad(range);
      let valueMs: number;
      try {
        valueMs = parseDuration(raw);
      } catch {
        return bad(range);
      }
      return valueMs >= minMs && valueMs <= maxMs ? valueMs : bad(range);
    },
    write: formatDuration,
  };
}

const sizeUnits: readonly (readonly [string, number])[] = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
  ['B', 1],
];

/** Bytes, written as `512MiB`; a bare number is bytes. */
export function size(minBytes: number, maxBytes: number): ValueKind<number> {
  return {
    name: 'size',
    read(raw) {
      const range = `a size from ${formatSize(minBytes)} to ${formatSize(maxBytes)}, such as 512MiB`;
      const found = /^(\d{1,15})(GiB|MiB|KiB|B)?$/.exec(typeof raw === 'number' ? String(raw) : String(raw ?? ''));
      if (found === null) return bad(range);
      const unit = sizeUnits.find(([name]) => name === (found[2] ?? 'B'));
      const bytes = Number(found[1]) * (unit?.[1] ?? 1);
      return bytes >= minBytes && bytes <= maxBytes ? bytes : bad(range);
    },
    write: formatSize,
  };
}

/** The largest unit that leaves a whole number. */
export function formatSize(bytes: number): string {
  const unit = sizeUnits.find(([, factor]) => bytes > 0 && bytes % factor === 0) ?? ['B', 1];
  return `${bytes / unit[1]}${unit[0]}`;
}

/** `true` or `false`. */
export function flag(): ValueKind<boolean> {
  return {
    name: 'boolean',
    read(raw) {
      if (raw === true || raw === 'true') return true;
      return raw === false || raw === 'false' ? false : bad('true or false');
    },
    write: String,
  };
}

/** Texts, written with commas between them or as a list; `none` for none. */
export function list(name: string): ValueKind<readonly string[]> {
  return {
    name: `${name}s`,
    read(raw) {
      const items: unknown[] = Array.isArray(raw) ? raw : raw === 'none' ? [] : String(raw ?? '').split(',');
      const texts = items.map((item) => (typeof item === 'string' ? item.trim() : ''));
      return texts.includes('') ? bad(`${name}s with commas between them, or none`) : texts;
    },
    write: (values) => (values.length === 0 ? 'none' : values.join(',')),
  };
}

export function choice<const Word extends string>(words: readonly Word[]): ValueKind<Word> {
  return {
    name: words.map((word) => `\`${word}\``).join(', '),
    read: (raw) => words.find((word) => word === raw) ?? bad(`one of ${words.join(', ')}`),
    write: (value) => value,
  };
}
