import { ServiceError } from '../../../../protocol/service-error.ts';
import type { LlamaBinding, NativeGrammar } from './binding.ts';

/** Throws `unsupported_response_format` for a grammar that the parser refuses. */
export function parseGrammar(binding: LlamaBinding, grammar: string): NativeGrammar {
  try {
    return new binding.AddonGrammar(grammar, { addonExports: binding, rootRuleName: 'root' });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ServiceError('unsupported_response_format', `the grammar cannot be used: ${reason}`, { cause: error });
  }
}
