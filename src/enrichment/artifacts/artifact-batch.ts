import type { InferenceCall } from '../../inference/admission.ts';
import { must } from '../../lib/assert.ts';
import type { SliceBounds } from '../../lib/concurrency/slices-within.ts';
import { type Source, sourceHash } from '../derive-source.ts';
import type { Batch, DocumentRow, FollowedPart } from '../following/followed-part.ts';
import type { HeldPart } from '../following/held-part.ts';
import type { PartOutcome } from '../following/part-outcome.ts';
import type { Made, PartMaker, SourceContent } from './part-maker.ts';
import { RecentResults } from './recent-results.ts';

/** The producer of the artifacts of one enrichment, ready to work. */
interface ArtifactPart extends Omit<FollowedPart, 'batches'> {
  readonly make: PartMaker;
  /** Everything that an artifact depends on, beside its source. */
  readonly makerFingerprint: string;
  /** Sources that are made into artifacts together, as far as whole documents go; what a kill makes again. */
  readonly batch: SliceBounds;
}

/** An enrichment as a follower makes its artifacts. */
export function followedArtifact(part: ArtifactPart): FollowedPart {
  const { partId, source, fingerprint } = part;
  const batches = () => {
    const recent = new RecentResults();
    return () => new ArtifactBatch(part, recent);
  };
  return { partId, source, fingerprint, batches };
}

interface Row {
  readonly row: DocumentRow;
  readonly known: PartOutcome | { readonly kind: 'wanted'; readonly hash: Uint8Array };
}

class ArtifactBatch implements Batch {
  readonly #part: ArtifactPart;
  readonly #recent: RecentResults;
  readonly #rows: Row[] = [];
  /** Hash -> source, of those that artifacts have to be made of. */
  readonly #sources = new Map<string, SourceContent>();
  #items = 0;
  #bytes = 0;

  /** `recent` is shared by the batches of an enrichment. */
  constructor(part: ArtifactPart, recent: RecentResults) {
    this.#part = part;
    this.#recent = recent;
  }

  get isFull(): boolean {
    const { items, bytes } = this.#part.batch;
    return this.#items >= items || this.#bytes >= bytes;
  }

  get sourceCount(): number {
    return this.#sources.size;
  }

  add(row: DocumentRow, source: Source, held: HeldPart | undefined): undefined {
    if (source.kind === 'none') this.#rows.push({ row, known: { kind: 'none' } });
    else if (source.kind === 'invalid') {
      this.#rows.push({ row, known: { kind: 'failed', error: source.error, isFinal: true } });
    } else this.#addContent(row, contentOf(source), held);
  }

  #addContent(row: DocumentRow, content: SourceContent, held: HeldPart | undefined): void {
    const hash = sourceHash(this.#part.makerFingerprint, hashedText(content));
    if (held?.isOf(hash)) {
      this.#rows.push({ row, known: { kind: 'kept' } });
      return;
    }
    const name = nameOf(hash);
    const made = this.#recent.get(name);
    this.#rows.push({ row, known: made ? outcomeOf(made, hash) : { kind: 'wanted', hash } });
    if (made || this.#sources.has(name)) return;
    this.#sources.set(name, content);
    this.#items += content.chunks?.length ?? 1;
    this.#bytes += bytesOf(content);
  }

  async run(call: InferenceCall): Promise<{ row: DocumentRow; outcome: PartOutcome }[]> {
    const sources = [...this.#sources];
    const contents = sources.map(([, content]) => content);
    const onMade = (at: number, made: Made) => {
      const [name] = must(sources[at], 'a source for each result');
      this.#recent.keep(name, made);
    };
    const made = sources.length === 0 ? [] : await this.#part.make(contents, call, onMade);
    for (const [at, each] of made.entries()) onMade(at, each);
    const byName = new Map(sources.map(([name], at) => [name, must(made[at], 'a result for each source')]));
    const settled = ({ known }: Row) =>
      known.kind === 'wanted' ? outcomeOf(must(byName.get(nameOf(known.hash)), 'what was made'), known.hash) : known;
    return this.#rows.map((each) => ({ row: each.row, outcome: settled(each) }));
  }
}

function outcomeOf(made: Made, hash: Uint8Array): PartOutcome {
  if (made.kind === 'part') return { kind: 'artifact', body: (partId) => made.body(partId, hash) };
  return made.kind === 'none' ? made : { kind: 'failed', error: made.error, isFinal: false };
}

function contentOf(source: Exclude<Source, { kind: 'none' | 'invalid' }>): SourceContent {
  if (source.kind === 'content') return source.content;
  return { parts: [source.kind === 'text' ? source.text : source.image] };
}

function hashedText({ parts, chunks }: SourceContent): string {
  const [only] = parts;
  return chunks === undefined && parts.length === 1 && typeof only === 'string'
    ? only
    : JSON.stringify(chunks ?? parts);
}

function bytesOf({ parts }: SourceContent): number {
  return parts.reduce((sum, part) => sum + (typeof part === 'string' ? part.length : part.base64.length), 0);
}

function nameOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('base64');
}
