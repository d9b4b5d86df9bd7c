import { expect, test } from 'bun:test';
import { TemplateForms } from '../../../src/inference/templates/template-forms.ts';
import { TemplateSandbox } from '../../../src/inference/templates/template-sandbox.ts';

const plain = '{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}';
const refusesSystem = `{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}${plain}`;
const wantsText = `{% for message in messages %}{% for call in message.tool_calls or [] %}{% if call.function.arguments is not string %}{{ raise_exception('text') }}{% endif %}{% endfor %}{% endfor %}${plain}`;
const refusesAll = `{{ raise_exception('never') }}`;

test('what a template takes is found out once', async () => {
  using sandbox = await TemplateSandbox.open();
  let renderings = 0;
  const forms = new TemplateForms(async (template, context) => {
    renderings += 1;
    return sandbox.render(template, JSON.stringify(context));
  });
  const usual = { foldsSystem: false, argumentsAsText: false };
  expect(await forms.of(plain)).toEqual(usual);
  expect(await forms.of(refusesSystem)).toEqual({ ...usual, foldsSystem: true });
  expect(await forms.of(wantsText)).toEqual({ ...usual, argumentsAsText: true });
  // A template that takes nothing is given the usual form, and says itself why.
  expect(await forms.of(refusesAll)).toEqual(usual);
  const before = renderings;
  await Promise.all([plain, refusesSystem, wantsText, refusesAll].map((template) => forms.of(template)));
  expect(renderings).toBe(before);
});

test('a broken template is tried again', async () => {
  let renderings = 0;
  const forms = new TemplateForms(async () => {
    renderings += 1;
    throw new Error('the sandbox is gone');
  });
  await expect(forms.of('x')).rejects.toThrow('gone');
  await expect(forms.of('x')).rejects.toThrow('gone');
  expect(renderings).toBe(2);
});
