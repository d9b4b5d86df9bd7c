import type { Placement, Role } from '../machine/placement.ts';

/** A process that answers each line of JSON with one line of JSON, so that it keeps what it built between the turns. */
export class LineProcess implements AsyncDisposable {
  readonly #name: string;
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>;
  readonly #lines: AsyncIterator<string>;

  constructor(options: {
    name: string;
    command: readonly string[];
    placement: Placement;
    role: Role;
    environment?: Record<string, string>;
  }) {
    this.#name = options.name;
    this.#child = Bun.spawn(options.placement.command(options.role, options.command), {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
      env: { ...process.env, ...options.environment },
    });
    this.#lines = jsonLines(this.#child.stdout);
  }

  /** One command at a time. */
  async ask(command: object): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify(command)}\n`);
    this.#child.stdin.flush();
    return this.answer();
  }

  /** The same of a process that is suspended between its turns: what it left undone must not slow another on its core. */
  async askAlone(command: object): Promise<unknown> {
    this.#child.kill('SIGCONT');
    try {
      return await this.ask(command);
    } finally {
      this.#child.kill('SIGSTOP');
    }
  }

  /** The next line of the process; some print one before any command. */
  async answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`${this.#name} ended with ${await this.#child.exited}`);
    return JSON.parse(value);
  }

  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGCONT');
    this.#child.stdin.end();
    await this.#child.exited;
  }
}

/** The lines that are JSON objects; addons may print others. */
export async function* jsonLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('{')) yield line;
  }
}
