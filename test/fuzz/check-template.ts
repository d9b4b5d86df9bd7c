import { parseTemplate } from '../../src/enrichment/template/parse-template.ts';
import { renderTemplate } from '../../src/enrichment/template/render-template.ts';
import { assert } from '../../src/lib/assert.ts';
import { errorCodes } from '../../src/protocol/error-codes.ts';
import { ServiceError } from '../../src/protocol/service-error.ts';

const document: unknown = JSON.parse(
  '{"a":{"b":["x",{"c":1}],"__proto__":{"d":2}},"list":[1,2,3],"html":"<p>t</p><script>s</script>","n":null,"toString":"own"}',
);

/**
 * Parses a template and renders it over a document. It must be rendered, or refused as the user's mistake, and the same
 * way each time; nothing of the interpreter may show. Answers what kind of answer it was.
 */
export function checkTemplate(template: string): string {
  const first = outcomeOf(template);
  assert(first === outcomeOf(template), 'a template answers differently the second time');
  assert(!/\[native code\]|function /.test(first) || /function /.test(template), 'a template shows the interpreter');
  return first;
}

function outcomeOf(template: string): string {
  try {
    return JSON.stringify(renderTemplate(parseTemplate(template), document));
  } catch (error) {
    if (!(error instanceof ServiceError) || errorCodes[error.code][0] !== 400) throw error;
    assert(error.message.length < 1_000, 'the refusal of a template is a sentence');
    return error.message;
  }
}
