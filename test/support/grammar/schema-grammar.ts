import { GrammarWriter } from '../../../src/inference/generation/grammar/grammar-writer.ts';
import { objectRule } from '../../../src/inference/generation/grammar/json-rules.ts';
import { schemaExpression } from '../../../src/inference/generation/grammar/schema-grammar.ts';

/** A grammar whose output is JSON that satisfies the schema. Throws `unsupported_response_format`. */
export function schemaGrammar(schema: unknown, strict = true): string {
  const writer = new GrammarWriter();
  return writer.text(schemaExpression(schema, writer, strict));
}

/** A grammar of any JSON object. */
export function jsonGrammar(): string {
  const writer = new GrammarWriter();
  return writer.text(objectRule(writer));
}
