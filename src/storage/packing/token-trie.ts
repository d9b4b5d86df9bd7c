import { must } from '../../lib/assert.ts';

/** Of a token, in bytes; also the greatest length that a match can have. */
export const tokenBytesMax = 24;

/** A match is its token times this, plus its length. */
const lengths = 32;
/** Nodes are below this, so that a node and a byte are one positive number of 31 bits. */
const nodesMax = 2 ** 22;
const golden = 0x9e3779b1;

/** Token of a match. */
export function tokenOf(match: number): number {
  return match >>> 5;
}

/** Bytes that a match covers. */
export function lengthOf(match: number): number {
  return match & (lengths - 1);
}

/**
 * Finds the longest token with which bytes go on. Every single byte is a token, so there always is one. The edges lie in one
 * table of open addressing, an edge and its end side by side: half of all steps would otherwise wait for memory.
 */
export class TokenTrie {
  /** [node * 256 + byte, or 0 for none; the node there] */
  #edges = new Int32Array(2 * 4_096);
  #shift = 20;
  #used = 0;
  /** Token that ends at a node, plus one; 0 for none. The nodes of single bytes come first, 1 to 256. */
  #tokens = new Int32Array(4_096);
  #lastNode = 256;

  add(bytes: Uint8Array, token: number): void {
    let node = must(bytes[0], 'a token without bytes') + 1;
    for (let at = 1; at < bytes.byteLength; at += 1) {
      const edge = (node << 8) | (bytes[at] as number);
      node = this.#end(edge) || this.#addEdge(edge);
    }
    this.#tokens[node] = token + 1;
  }

  /** The longest token at `from`; read it by `tokenOf` and `lengthOf`. */
  match(bytes: Uint8Array, from: number): number {
    const edges = this.#edges;
    const tokens = this.#tokens;
    const shift = this.#shift;
    const mask = edges.length - 1;
    let node = (bytes[from] as number) + 1;
    let found = ((tokens[node] as number) - 1) * lengths + 1;
    for (let at = from + 1; at < bytes.byteLength; at += 1) {
      const edge = (node << 8) | (bytes[at] as number);
      let slot = (Math.imul(edge, golden) >>> shift) << 1;
      for (let held = edges[slot] as number; held !== edge; held = edges[slot] as number) {
        if (held === 0) return found;
        slot = (slot + 2) & mask;
      }
      node = edges[slot + 1] as number;
      const token = tokens[node] as number;
      if (token > 0) found = (token - 1) * lengths + at - from + 1;
    }
    return found;
  }

  #slotOf(edge: number): number {
    const mask = this.#edges.length - 1;
    let slot = (Math.imul(edge, golden) >>> this.#shift) << 1;
    while (this.#edges[slot] !== 0 && this.#edges[slot] !== edge) slot = (slot + 2) & mask;
    return slot;
  }

  #end(edge: number): number {
    return this.#edges[this.#slotOf(edge) + 1] as number;
  }

  #addEdge(edge: number): number {
    const node = this.#lastNode + 1;
    if (node >= nodesMax) throw new RangeError('a trie of tokens has too many nodes');
    if (2 * this.#used >= this.#edges.length / 2) this.#grow();
    this.#put(edge, node);
    this.#used += 1;
    this.#lastNode = node;
    if (node >= this.#tokens.length) this.#tokens = enlarged(this.#tokens);
    return node;
  }

  #put(edge: number, node: number): void {
    const slot = this.#slotOf(edge);
    this.#edges[slot] = edge;
    this.#edges[slot + 1] = node;
  }

  #grow(): void {
    const before = this.#edges;
    this.#edges = new Int32Array(2 * before.length);
    this.#shift -= 1;
    for (let slot = 0; slot < before.length; slot += 2) {
      if (before[slot] !== 0) this.#put(before[slot] as number, before[slot + 1] as number);
    }
  }
}

function enlarged(values: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(2 * values.length);
  larger.set(values);
  return larger;
}
