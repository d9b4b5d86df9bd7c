import { readFileSync } from 'node:fs';
import type { Placement, Role } from '../machine/placement.ts';
import { cpuUsOf } from './process-cpu.ts';

/** How long a started server may take to answer, and a stopped one to end. */
const readyDeadlineMs = 30_000;
const stopDeadlineMs = 30_000;
const pollMs = 2;

/**
 * A server process of a measurement (ours or a peer), held to the server's core unless
 * told otherwise. What it says on standard error is shown.
 */
export class ChildProcess implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'ignore', 'ignore', 'inherit'>;
  readonly name: string;
  readonly port: number;

  private constructor(name: string, port: number, child: Bun.Subprocess<'ignore', 'ignore', 'inherit'>) {
    this.name = name;
    this.port = port;
    this.#child = child;
  }

  /** Starts `command`, which must serve `readyPath` on `port`, and waits until that answers 200. */
  static async start(options: {
    name: string;
    command: readonly string[];
    port: number;
    readyPath: string;
    placement: Placement;
    role?: Role;
    environment?: Record<string, string>;
  }): Promise<ChildProcess> {
    const child = Bun.spawn(options.placement.command(options.role ?? 'server', options.command), {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'inherit',
      env: { ...process.env, ...options.environment },
    });
    const started = new ChildProcess(options.name, options.port, child);
    await started.#ready(options.readyPath);
    return started;
  }

  /** As `cpuUsOf` this process. */
  cpuUs(): number {
    return cpuUsOf(this.#child.pid);
  }

  /** Resident memory in bytes. */
  residentBytes(): number {
    return this.#status('VmRSS') * 1_024;
  }

  threads(): number {
    return this.#status('Threads');
  }

  #status(name: string): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'latin1');
    return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  }

  /** Stops every thread of the process where it stands. Its sockets stay open. */
  suspend(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /**
   * Does `work` while this process runs, and suspends it afterwards. Sides that share a core are kept suspended between
   * their turns: work that one of them left behind must not slow the other, and is done at the start of its own next turn.
   */
  async alone<Result>(work: () => Promise<Result>): Promise<Result> {
    this.resume();
    try {
      return await work();
    } finally {
      this.suspend();
    }
  }

  get pid(): number {
    return this.#child.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    this.resume();
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), stopDeadlineMs);
    await this.#child.exited;
    clearTimeout(timer);
  }

  async #ready(path: string): Promise<void> {
    const deadline = performance.now() + readyDeadlineMs;
    while (performance.now() < deadline) {
      if (this.#child.exitCode !== null) throw new Error(`${this.name} ended at its start`);
      const response = await fetch(`http://127.0.0.1:${this.port}${path}`).catch(() => undefined);
      if (response?.ok) return;
      await Bun.sleep(pollMs);
    }
    await this[Symbol.asyncDispose]();
    throw new Error(`${this.name} did not answer ${path} within ${readyDeadlineMs} ms`);
  }
}

/** A port that was free a moment ago. */
export function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
  const port = probe.port ?? 0;
  probe.stop(true);
  return port;
}
