import { freeBytes } from '../../lib/free-bytes.ts';
import type { WorkerChannel } from '../../runtime/worker-channel.ts';
import type { ArchiveFile, BlockEntry } from '../archive/manifest.ts';
import type { ObjectWriter } from '../stores/object-store.ts';
import type { PackedBlock } from './block-packer.ts';
import type { CopyCalls, CopyPage } from './copy-calls.ts';

/** Steps that give blocks. */
type Steps = Omit<CopyCalls, 'open' | 'finish' | 'close'>;
type Paged = 'documents' | 'check' | 'live' | 'changes' | 'bytes';

/** A file on its way to the store: while blocks are written, the copying thread fills the next ones. */
export class CopyWriter {
  readonly #channel: WorkerChannel<CopyCalls>;
  readonly #file: number;
  readonly #name: string;
  readonly #object: ObjectWriter;
  readonly #entries: BlockEntry[] = [];
  #written: Promise<void> = Promise.resolve();

  constructor(channel: WorkerChannel<CopyCalls>, file: number, name: string, object: ObjectWriter) {
    this.#channel = channel;
    this.#file = file;
    this.#name = name;
    this.#object = object;
  }

  /** One step. Resolves when what came before it is written. */
  async step<Name extends keyof Steps>(name: Name, request: Omit<Steps[Name][0], 'file'>): Promise<Steps[Name][1]> {
    const step = (await this.#channel.call(name, { ...request, file: this.#file } as Steps[Name][0])) as Steps[Name][1];
    await this.#write(step.blocks);
    return step;
  }

  /** Steps until there are no more; `onPage` may throw to give up between two. Returns the bytes that were read. */
  async all<Name extends Paged>(
    name: Name,
    request: Omit<Steps[Name][0], 'file'>,
    onPage: (page: CopyPage) => void,
  ): Promise<number> {
    let bytes = 0;
    for (let { after } = request, more = true; more; ) {
      const page = await this.step(name, { ...request, after });
      onPage(page);
      bytes += page.bytes;
      ({ after, more } = page);
    }
    return bytes;
  }

  /** Durable when it resolves. */
  async finish(): Promise<ArchiveFile> {
    const { blocks, totals } = await this.#channel.call('finish', { file: this.#file });
    await this.#write(blocks);
    await this.#written;
    await this.#object.close();
    return { name: this.#name, ...totals, blocks: this.#entries };
  }

  async abort(): Promise<void> {
    await this.#written.catch(() => undefined);
    await this.#object.abort();
  }

  async #write(blocks: readonly PackedBlock[]): Promise<void> {
    await this.#written;
    this.#written = this.#put(blocks);
    // A failure is thrown where the result is awaited.
    this.#written.catch(() => undefined);
  }

  async #put(blocks: readonly PackedBlock[]): Promise<void> {
    for (const { frame, ...entry } of blocks) {
      await this.#object.write(frame);
      freeBytes(frame);
      this.#entries.push(entry);
    }
  }
}
