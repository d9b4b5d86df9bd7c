import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { ConfigError } from '../../config/config-error.ts';
import { parseTemplate } from '../../enrichment/template/parse-template.ts';
import { renderTemplate } from '../../enrichment/template/render-template.ts';
import { memberAt } from '../../lib/document-path.ts';
import { type DatabaseCalls, RefusedError } from '../database-calls.ts';
import { stopBySignal } from '../stop-by-signal.ts';
import { exitCodes, type Verb, type VerbContext } from '../verb.ts';
import { clientFlags, countOf, given, printJson, runClient, tablePath, usageOf } from './client-verb.ts';

const usualBatch = { documents: 1_000, bytes: 4 * 1024 * 1024 };

/** `sundew load`: writes the documents of a file of lines. */
export const load: Verb = {
  name: 'load',
  summary: 'Load the documents of a file into a table: one JSON object on each line.',
  usage: 'TABLE --file FILE [options]',
  flags: [
    { flag: '--file', value: 'FILE', help: 'The file; /dev/stdin for what another program writes.' },
    { flag: '--id-field', value: 'FIELD', help: 'The member that is the key of a document; `id` unless given.' },
    { flag: '--id-template', value: 'TEMPLATE', help: 'The key made of members, such as `{{shop}}:{{number}}`.' },
    { flag: '--size', value: 'INTEGER', help: `Documents of one batch at most; ${usualBatch.documents} unless given.` },
    { flag: '--batch-bytes', value: 'INTEGER', help: 'Bytes of one batch at most, but for a longer document; 4 MiB.' },
    { flag: '--batches', value: 'INTEGER', help: 'Batches to load; all unless given.' },
    { flag: '--sync-level', value: 'LEVEL', help: 'What each batch waits for, such as write or full_index.' },
    { flag: '--max-errors', value: 'INTEGER', help: 'Lines and batches that may fail before the load ends; 0.' },
    { flag: '--dry-run', help: 'Read the file and write nothing.' },
    ...clientFlags,
  ],
  async run(context) {
    const [table, ...more] = context.args.positionals;
    const file = context.args.flags.get('--file');
    if (table === undefined || file === undefined || more.length > 0) throw usageOf(load);
    const loading = new Loading(tablePath(table, 'batch'), context);
    using stopping = stopBySignal((name) => name);
    const { signal } = stopping;
    const run = async (call: DatabaseCalls['call'] | undefined) => {
      try {
        for await (const line of linesOf(file, signal)) {
          if (signal.aborted || !(await loading.take(line, call))) break;
        }
        if (!signal.aborted) await loading.end(call);
      } catch (error) {
        if (error instanceof RefusedError) loading.tellUnfinished();
        throw error;
      }
      if (!signal.aborted) return loading.tell();
      loading.tellUnfinished();
      return 128 + constants.signals[signal.reason as NodeJS.Signals];
    };
    return context.args.flags.has('--dry-run')
      ? await run(undefined)
      : await runClient(context, async ({ call }) => await run(call));
  },
};

/**
 * Lines as their bytes, one character each: in text, more characters end a line than in JSON. They end with the signal. Throws
 * `ConfigError` for a file that cannot be read.
 */
async function* linesOf(file: string, signal: AbortSignal): AsyncGenerator<string> {
  try {
    // A read of a pipe that has nothing now can be given up, which one by `createReadStream` cannot.
    const input = Readable.fromWeb(Bun.file(file).stream(), { encoding: 'latin1', signal });
    yield* createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    if (signal.aborted) return;
    throw new ConfigError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

class Loading {
  readonly #path: string;
  readonly #context: VerbContext;
  readonly #keyOf: (document: Record<string, unknown>) => string;
  readonly #documentsMax: number;
  readonly #bytesMax: number;
  readonly #batchesMax: number;
  readonly #errorsMax: number;
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true });
  #batch = new Map<string, string>();
  #bytes = 0;
  #lines = 0;
  /** The last line of the batch, and that of the one before it. */
  #lastLine = 0;
  #lastWritten = 0;
  #batches = 0;
  #loaded = 0;
  #errors = 0;

  constructor(path: string, context: VerbContext) {
    this.#path = path;
    this.#context = context;
    this.#keyOf = keyReader(context);
    this.#documentsMax = countOf(context, '--size', 1) ?? usualBatch.documents;
    this.#bytesMax = countOf(context, '--batch-bytes', 1) ?? usualBatch.bytes;
    this.#batchesMax = countOf(context, '--batches', 1) ?? Number.POSITIVE_INFINITY;
    this.#errorsMax = countOf(context, '--max-errors') ?? 0;
  }

  /** Whether another line is wanted. */
  async take(bytes: string, call: DatabaseCalls['call'] | undefined): Promise<boolean> {
    this.#lines += 1;
    if (bytes.trim() === '') return true;
    const line = this.#textOf(bytes);
    const key = line === undefined ? undefined : this.#keyIn(line);
    if (line === undefined || key === undefined) return this.#errors <= this.#errorsMax;
    // Of two documents of one key in a batch the later one would be refused with the batch.
    const isFull = this.#batch.size >= this.#documentsMax || this.#bytes + bytes.length > this.#bytesMax;
    if (this.#batch.size > 0 && (isFull || this.#batch.has(key))) await this.end(call);
    if (this.#errors > this.#errorsMax || this.#batches >= this.#batchesMax) return false;
    this.#batch.set(key, line);
    this.#lastLine = this.#lines;
    this.#bytes += bytes.length;
    return true;
  }

  /** Writes what was taken. A fault of the server, which may pass, ends the load. */
  async end(call: DatabaseCalls['call'] | undefined): Promise<void> {
    if (this.#batch.size === 0 || this.#batches >= this.#batchesMax) return;
    const members = [...this.#batch].map(([key, line]) => `${JSON.stringify(key)}:${line}`);
    const more = JSON.stringify(given({ sync_level: this.#context.args.flags.get('--sync-level') }));
    const count = this.#batch.size;
    this.#batch = new Map();
    this.#bytes = 0;
    this.#batches += 1;
    try {
      await call?.(
        'POST',
        this.#path,
        `{"inserts":{${members.join(',')}}${more === '{}' ? '' : `,${more.slice(1, -1)}`}}`,
      );
      this.#loaded += count;
    } catch (error) {
      if (!(error instanceof RefusedError) || error.isRetryable) throw error;
      this.#fail(`batch ${this.#batches}, up to line ${this.#lastLine}: ${error.message}`);
    }
    this.#lastWritten = this.#lastLine;
  }

  /** Tells how far a load came that has not read the whole file. */
  tellUnfinished(): void {
    const isDryRun = this.#context.args.flags.has('--dry-run');
    const rest = isDryRun ? 'nothing was written' : 'loading the file again writes the rest';
    this.#context.explain(`ended behind line ${this.#lastWritten}; ${rest}\n`);
    this.tell();
  }

  tell(): number {
    printJson(this.#context, {
      lines: this.#lines,
      batches: this.#batches,
      loaded: this.#loaded,
      errors: this.#errors,
    });
    return this.#errors === 0 ? exitCodes.done : exitCodes.failed;
  }

  #textOf(bytes: string): string | undefined {
    try {
      return this.#utf8.decode(Buffer.from(bytes, 'latin1'));
    } catch {
      this.#fail(`line ${this.#lines}: the text is not UTF-8`);
      return undefined;
    }
  }

  #keyIn(line: string): string | undefined {
    try {
      const document: unknown = JSON.parse(line);
      if (typeof document === 'object' && document !== null && !Array.isArray(document)) {
        return this.#keyOf(document as Record<string, unknown>);
      }
      this.#fail(`line ${this.#lines}: a document must be a JSON object`);
    } catch (error) {
      this.#fail(`line ${this.#lines}: ${error instanceof Error ? error.message : String(error)}`);
    }
    return undefined;
  }

  #fail(why: string): void {
    this.#errors += 1;
    this.#context.explain(`${why}\n`);
  }
}

function keyReader({ args }: VerbContext): (document: Record<string, unknown>) => string {
  const template = args.flags.get('--id-template');
  const path = args.flags.get('--id-field');
  if (template !== undefined && path !== undefined) throw new ConfigError('give --id-field or --id-template, not both');
  if (template !== undefined) {
    const nodes = parseTemplate(template);
    return (document) => keyOf(renderTemplate(nodes, document).join(''), '--id-template makes no key');
  }
  const member = path ?? 'id';
  return (document) => keyOf(memberAt(document, member.split('.')), `"${member}" holds no key`);
}

function keyOf(value: unknown, why: string): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(why);
}
