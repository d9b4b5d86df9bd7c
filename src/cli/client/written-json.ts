import { ConfigError } from '../../config/config-error.ts';

/** JSON as somebody wrote it. It is sent as it is: parsed and written again, a long number would be another one. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Throws `ConfigError` for a text that is no JSON object; `where` says what it is the value of. */
export function objectOf(text: string, where: string): WrittenJson {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return new WrittenJson(text.trim());
  } catch {
    // Text that is no JSON is no object.
  }
  throw new ConfigError(`${where} must be a JSON object`);
}

/**
 * The text of an object with these members, but for undefined ones, behind those of
 * `first`. A member of both is there twice, which servers refuse.
 */
export function bodyText(members: Readonly<Record<string, unknown>>, first = new WrittenJson('{}')): string {
  const before = first.text.slice(1, -1).trim();
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  const behind = given.map(([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`);
  return `{${[...(before === '' ? [] : [before]), ...behind].join(',')}}`;
}

function textOf(value: unknown): string {
  return value instanceof WrittenJson ? value.text : JSON.stringify(value);
}
