import { limits } from '../../config/limits.ts';
import { ServiceError } from '../../protocol/service-error.ts';

const expansionsMax = 64;

/** Bounds how much one request may ask for, however it is spelled. */
export class QueryBudget {
  #nodes = 0;
  #expansions = 0;
  #textChars = 0;
  #referredChars = 0;

  /** Takes nodes from what the request may still use. */
  spend(nodes = 1): void {
    this.#nodes += nodes;
    if (this.#nodes > limits.queryNodesMax) {
      throw new ServiceError('limit_exceeded', `a query has at most ${limits.queryNodesMax} clauses`);
    }
  }

  /** Takes a text that is to be cut into words. */
  spendText(text: string): void {
    this.#textChars += text.length;
    if (this.#textChars > limits.queryTextCharsMax) {
      const message = `the texts of a query have at most ${limits.queryTextCharsMax} characters together`;
      throw new ServiceError('limit_exceeded', message);
    }
  }

  /** Takes the characters of a filter that is referred to: written out each time, the query would be as long. */
  spendReference(chars: number): void {
    this.#referredChars += chars;
    if (this.#referredChars > limits.queryBytesMax) {
      const message = `the filters that a query refers to have at most ${limits.queryBytesMax} characters, counted at each "ref"`;
      throw new ServiceError('limit_exceeded', message);
    }
  }

  /** Takes conditions that each walk the words of the index: wildcards, expressions, misspelt words, networks. */
  spendExpansion(expansions = 1): void {
    this.#expansions += expansions;
    if (this.#expansions > expansionsMax) {
      const what = 'wildcards, regular expressions, fuzzy words and networks';
      throw new ServiceError('limit_exceeded', `a query has at most ${expansionsMax} ${what}`);
    }
  }
}

/** Refuses what nests too deeply; `depth` counts from 0. */
export function checkNesting(depth: number): void {
  if (depth > limits.queryNestingMax) {
    throw new ServiceError('limit_exceeded', `a query nests at most ${limits.queryNestingMax} levels deep`);
  }
}
