import { limits } from '../../config/limits.ts';
import { suggestion } from '../../lib/text/did-you-mean.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { providerNamed } from '../../provider-config/provider-names.ts';

/** A model of this server says where parts of a text end; one that is too long is cut further, as by tokens. */
export interface ModelChunker {
  readonly by: 'model';
  readonly model: string;
  /** How sure the model has to be that a part ends, 0 to 1. */
  readonly threshold: number;
  readonly targetTokens: number;
  readonly separator: string;
  readonly chunksMax: number;
}

/** How a text is cut: by a model, in windows of characters, or in runs of tokens that end where a part of the text does. */
export type ChunkerConfig =
  | ModelChunker
  | { readonly by: 'characters'; readonly size: number; readonly overlap: number; readonly chunksMax: number }
  | {
      readonly by: 'tokens';
      readonly targetTokens: number;
      readonly overlapTokens: number;
      readonly separator: string;
      readonly chunksMax: number;
    }
  /** The whole text is one chunk. */
  | { readonly by: 'nothing' };

const members = ['provider', 'model', 'max_chunks', 'threshold', 'text', 'store_chunks'];
const textMembers = ['target_tokens', 'overlap_tokens', 'separator'];
/** The chunker that needs no model, and other names for it. */
const fixedNames = ['fixed', 'fixed_bert', 'fixed_bpe'];

export function isFixedChunker(model: string): boolean {
  return fixedNames.includes(model);
}

const usualTokens = 500;
const separatorCharsMax = 1_024;
const modelCharsMax = 255;

type Members = Readonly<Record<string, unknown>>;

/**
 * Checks a chunker; `where` names it in messages. Without `max_chunks` no part of a text is left out. Throws `invalid_request`.
 * That a model is there is checked by whoever creates what is cut by it.
 */
export function readChunkerConfig(given: Members, where: string): ChunkerConfig {
  refuseUnknown(given, members, where);
  const { provider = 'service', model = 'fixed', text = {}, threshold = 0.5 } = given;
  const { max_chunks: most = limits.documentChunksMax } = given;
  if (provider === 'mock') return { by: 'nothing' };
  if (typeof provider !== 'string' || providerNamed(provider) !== 'service')
    throw refused(`${where}.provider`, 'must be "service" or "mock"');
  if (typeof model !== 'string' || model === '' || model.length > modelCharsMax) {
    throw refused(`${where}.model`, `must be the name of a model, of ${modelCharsMax} characters at most`);
  }
  if (typeof threshold !== 'number' || !(threshold >= 0 && threshold <= 1)) {
    throw refused(`${where}.threshold`, 'must be a number from 0 to 1');
  }
  if (!isMembers(text)) throw refused(`${where}.text`, 'must be an object');
  refuseUnknown(text, textMembers, `${where}.text`);
  const { separator = '\n\n' } = text;
  if (typeof separator !== 'string' || separator.length > separatorCharsMax) {
    throw refused(`${where}.text.separator`, `must be a string of ${separatorCharsMax} characters at most`);
  }
  const targetTokens = integer(text.target_tokens ?? usualTokens, `${where}.text.target_tokens`, 1);
  const overlapTokens = integer(text.overlap_tokens ?? 0, `${where}.text.overlap_tokens`, 0);
  if (overlapTokens >= targetTokens) {
    throw refused(`${where}.text.overlap_tokens`, 'must be less than "target_tokens"');
  }
  const chunksMax = integer(most, `${where}.max_chunks`, 1, limits.documentChunksMax);
  if (isFixedChunker(model)) return { by: 'tokens', targetTokens, overlapTokens, separator, chunksMax };
  if (overlapTokens > 0) {
    throw refused(`${where}.text.overlap_tokens`, 'must be 0 where a model cuts: its chunks do not overlap');
  }
  return { by: 'model', model, threshold, targetTokens, separator, chunksMax };
}

/** Windows of characters. Throws `invalid_request`. */
export function readWindows(size: number, overlap: number): ChunkerConfig {
  if (size < 1) throw refused('chunk_size', 'must be at least 1; or give "chunker_json"');
  if (overlap >= size) throw refused('chunk_overlap', 'must be less than "chunk_size"');
  return { by: 'characters', size, overlap, chunksMax: limits.documentChunksMax };
}

function refuseUnknown(given: Members, known: readonly string[], where: string): void {
  for (const member of Object.keys(given)) {
    if (known.includes(member)) continue;
    throw refused(where, `has no member "${member.slice(0, 64)}".${suggestion(member, [...known])}`);
  }
}

function integer(value: unknown, where: string, least: number, most: number = limits.chunkTokensMax): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw refused(where, `must be an integer from ${least} to ${most}`);
}

export function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(member: string, why: string): ServiceError {
  return new ServiceError('invalid_request', `"${member}" ${why}`);
}
