/** One answer as it came over the socket. */
export interface RawAnswer {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/**
 * Sends bytes over a fresh connection and resolves when the server closes it. `parts` go out one after the other, each
 * when the one before was taken and `between` (when given) has settled.
 */
export function sendRaw(port: number, parts: readonly string[], between?: () => Promise<void>): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    let text = '';
    let closed = false;
    void Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        async open(socket) {
          for (const part of parts) {
            if (closed) return;
            socket.write(part);
            await between?.();
          }
        },
        data: (_socket, bytes) => {
          text += bytes.toString();
        },
        close: () => {
          closed = true;
          resolve(parsed(text));
        },
        error: (_socket, error) => reject(error),
      },
    }).catch(reject);
  });
}

function parsed(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body: text.slice(end + 4) };
}
