/** An answer whose status or headers differ from the route's usual ones. */
export class Reply {
  readonly status: number;
  /** UTF-8 text or bytes; `null` for an empty answer. */
  readonly text: string | Uint8Array<ArrayBuffer> | null;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Of a route that answers often, always with the same names in `headers`: its own `keptJsonHeaders`, to be written over. */
  readonly kept: Headers | undefined;

  constructor(
    status: number,
    text: string | Uint8Array<ArrayBuffer> | null,
    headers?: Readonly<Record<string, string>>,
    kept?: Headers,
  ) {
    this.status = status;
    this.text = text;
    this.headers = headers;
    this.kept = kept;
  }
}

export function keptJsonHeaders(): Headers {
  return new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store' });
}

/** `value` as JSON; `undefined` makes an empty answer. */
export function reply(status: number, value: unknown, headers?: Readonly<Record<string, string>>): Reply {
  return new Reply(status, value === undefined ? null : JSON.stringify(value), headers);
}

/** JSON that is text or bytes already: stored documents leave as they were stored. */
export function rawJson(
  status: number,
  json: string | Uint8Array<ArrayBuffer>,
  headers?: Readonly<Record<string, string>>,
): Reply {
  return new Reply(status, json, headers);
}
