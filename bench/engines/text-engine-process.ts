import type { Placement } from '../machine/placement.ts';
import { LineProcess } from '../processes/line-process.ts';
import { peerNumber } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';

/**
 * An engine in a process of its own, with the index of a document file and the
 * queries that it is asked; suspended between its turns.
 */
export class TextEngineProcess implements AsyncDisposable {
  readonly #process: LineProcess;
  readonly #directory: TemporaryDirectory;
  readonly bytes: number;
  readonly segments: number;

  private constructor(process: LineProcess, directory: TemporaryDirectory, index: Record<string, unknown>) {
    this.#process = process;
    this.#directory = directory;
    this.bytes = peerNumber(index, 'bytes');
    this.segments = peerNumber(index, 'segments');
  }

  /** Waits until the index is built, in the directory that `command` is given. */
  static async start(options: {
    name: string;
    command: (directory: string) => readonly string[];
    placement: Placement;
  }): Promise<TextEngineProcess> {
    const { name, placement } = options;
    const directory = new TemporaryDirectory();
    const command = options.command(directory.path);
    const environment = { TMPDIR: directory.path };
    const process = new LineProcess({ name, command, placement, role: 'server', environment });
    return new TextEngineProcess(process, directory, (await process.answer()) as Record<string, unknown>);
  }

  /**
   * Asks all queries `rounds` times; medians by query in microseconds. `form` is
   * one of those that the engine has the index in.
   */
  async ask(rounds: number, form?: string): Promise<number[]> {
    const { us } = (await this.#process.askAlone({ form, rounds })) as { us: number[] };
    return us;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    this.#directory[Symbol.dispose]();
  }
}
