import { ServiceError } from '../../../protocol/service-error.ts';
import type { LlamaBinding, NativeGrammar } from './binding.ts';
import { grammarFault } from './check-grammar.ts';

/** Throws `unsupported_response_format` for a grammar that cannot be used. `takeWords` gives llama.cpp's own. */
export async function parseGrammar(
  binding: LlamaBinding,
  grammar: string,
  takeWords: () => Promise<string>,
): Promise<NativeGrammar> {
  const fault = grammarFault(grammar);
  if (fault !== undefined) throw refusal(fault);
  try {
    return new binding.AddonGrammar(grammar, { addonExports: binding, rootRuleName: 'root' });
  } catch (error) {
    throw refusal((await takeWords()) || String(error), error);
  }
}

function refusal(reason: string, cause?: unknown): ServiceError {
  return new ServiceError('unsupported_response_format', `the grammar cannot be used: ${reason}`, { cause });
}
