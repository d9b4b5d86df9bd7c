import { ServiceError } from '../protocol/service-error.ts';
import type { OperationHandlers } from './backend.ts';

/** The vocabulary of a loaded model. */
export interface TokenizerOfModel {
  /** Tokens of all texts are below. */
  readonly size: number;
  /** Text that people wrote never becomes a special token. */
  encode(text: string): readonly number[];
  /** Tokens of a text with those that the model wants around it. */
  framed(tokens: readonly number[]): readonly number[];
  textOf(token: number): string;
  isControl(token: number): boolean;
  /** The text of tokens, without special ones. */
  decode(tokens: readonly number[]): string;
}

/** The operations of a model that need its vocabulary alone. */
export function tokenHandlers(open: () => TokenizerOfModel): Pick<OperationHandlers, 'tokenize' | 'detokenize'> {
  return {
    async tokenize({ texts, special }) {
      const tokenizer = open();
      const tokens = texts.map((text) => {
        const plain = tokenizer.encode(text);
        return Uint32Array.from(special ? tokenizer.framed(plain) : plain);
      });
      const piece = (token: number) => ({ text: tokenizer.textOf(token), special: tokenizer.isControl(token) });
      return { tokens, pieces: tokens.map((each) => Array.from(each, piece)) };
    },
    async detokenize({ tokens }) {
      const tokenizer = open();
      const wrong = tokens.find((token) => token >= tokenizer.size);
      if (wrong === undefined) return { text: tokenizer.decode(tokens) };
      const message = `the token ${wrong} is not one of the ${tokenizer.size} of the model`;
      throw new ServiceError('invalid_request', message);
    },
  };
}
