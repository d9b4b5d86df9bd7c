import { must } from '../../lib/assert.ts';
import { tokensMax } from './token-dictionary.ts';
import { lengthOf, TokenTrie, tokenBytesMax, tokenOf } from './token-trie.ts';

/** Tokens that are looked at, of which the best are kept. */
const candidatesMax = 32_768;
/** A smaller sample shows a pair of tokens that is worth a token of its own less often. */
const smallSampleBytes = 512 * 1_024;
const keepingRounds = 2;

/**
 * Chooses tokens for bodies like those of a sample, the most used first. Two tokens that meet often become one, as in
 * Gargiulo, Venturini: OnPair: Short Strings Compression for Fast Random Access (2025); then those are kept that save the most
 * bytes, in rounds, because what goes leaves its bytes to others. Every single byte is a token. Takes about 80 ms for a sample
 * of half a megabyte.
 */
export function trainTokens(sample: readonly Uint8Array[]): Uint8Array[] {
  let tokens = joinedTokens(sample);
  let uses: number[] = [];
  for (let round = 0; round <= keepingRounds; round += 1) {
    uses = countUses(sample, tokens);
    if (round < keepingRounds) tokens = keptTokens(tokens, uses);
  }
  const order = [...tokens.keys()].sort((left, right) => usesOf(uses, right) - usesOf(uses, left));
  return order.map((token) => must(tokens[token], 'a token that was not found'));
}

function usesOf(uses: readonly number[], token: number): number {
  return uses[token] ?? 0;
}

function singleBytes(): Uint8Array[] {
  return Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte));
}

function trieOf(tokens: readonly Uint8Array[]): TokenTrie {
  const trie = new TokenTrie();
  for (const [token, bytes] of tokens.entries()) trie.add(bytes, token);
  return trie;
}

/** Reads the sample once with the tokens found so far, and joins what has met often enough. */
function joinedTokens(sample: readonly Uint8Array[]): Uint8Array[] {
  const sampleBytes = sample.reduce((sum, body) => sum + body.byteLength, 0);
  const joinedAt = sampleBytes < smallSampleBytes ? 2 : 3;
  const tokens = singleBytes();
  const trie = trieOf(tokens);
  const meetings = new Map<number, number>();
  for (const body of sample) {
    let [before, lengthBefore] = [-1, tokenBytesMax];
    for (let at = 0; at < body.byteLength && tokens.length < candidatesMax; ) {
      const match = trie.match(body, at);
      let [token, length] = [tokenOf(match), lengthOf(match)];
      at += length;
      if (lengthBefore + length <= tokenBytesMax) {
        const pair = before * candidatesMax + token;
        const met = (meetings.get(pair) ?? 0) + 1;
        if (met < joinedAt) meetings.set(pair, met);
        else {
          meetings.delete(pair);
          [token, length] = [tokens.length, lengthBefore + length];
          tokens.push(body.slice(at - length, at));
          trie.add(body.subarray(at - length, at), token);
        }
      }
      [before, lengthBefore] = [token, length];
    }
  }
  return tokens;
}

function countUses(sample: readonly Uint8Array[], tokens: readonly Uint8Array[]): number[] {
  const trie = trieOf(tokens);
  const uses = new Array<number>(tokens.length).fill(0);
  for (const body of sample) {
    for (let at = 0; at < body.byteLength; ) {
      const match = trie.match(body, at);
      uses[tokenOf(match)] = usesOf(uses, tokenOf(match)) + 1;
      at += lengthOf(match);
    }
  }
  return uses;
}

/** The single bytes, and the tokens that save the most over them. */
function keptTokens(tokens: readonly Uint8Array[], uses: readonly number[]): Uint8Array[] {
  const joined = [...tokens.entries()].filter(([token, { byteLength }]) => byteLength > 1 && usesOf(uses, token) > 1);
  const savedBy = ([token, { byteLength }]: [number, Uint8Array]) => usesOf(uses, token) * (byteLength - 1);
  joined.sort((left, right) => savedBy(right) - savedBy(left));
  return [...singleBytes(), ...joined.slice(0, tokensMax - 256).map(([, bytes]) => bytes)];
}
