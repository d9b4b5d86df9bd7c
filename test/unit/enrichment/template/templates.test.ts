import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { decode } from '@toon-format/toon';
import fc from 'fast-check';
import { encodeToon } from '../../../../src/enrichment/template/encode-toon.ts';
import { parseTemplate } from '../../../../src/enrichment/template/parse-template.ts';
import { renderTemplate } from '../../../../src/enrichment/template/render-template.ts';
import { scrubHtml } from '../../../../src/enrichment/template/scrub-html.ts';
import { Templates } from '../../../../src/enrichment/template/templates.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const folder = Bun.fileURLToPath(new URL('../../../fixtures/templates/', import.meta.url));
const minute = 60_000;

function render(template: string, context: unknown = {}) {
  return renderTemplate(parseTemplate(template), context);
}

describe('a template', () => {
  const document: unknown = JSON.parse(readFileSync(`${folder}document.json`, 'utf8'));
  const names = readdirSync(folder).flatMap((file) => (file.endsWith('.hbs') ? [file.slice(0, -4)] : []));

  test.each(names)('%s is rendered as its golden file says', (name) => {
    const template = readFileSync(`${folder}${name}.hbs`, 'utf8');
    expect(render(template, document).join('')).toBe(readFileSync(`${folder}${name}.txt`, 'utf8'));
  });

  test('keeps the places of media between its texts', () => {
    const template =
      'a {{media url=photo}} b {{media photo as="text"}}{{media url=missing}}{{#each list}}{{remoteMedia url=this}}{{/each}}';
    expect(render(template, { photo: 'https://h/p.png', list: ['x:1', 'x:2'] })).toEqual([
      'a ',
      { url: 'https://h/p.png', as: undefined },
      ' b ',
      { url: 'https://h/p.png', as: 'text' },
      { url: 'x:1', as: undefined },
      { url: 'x:2', as: undefined },
    ]);
  });

  test('that is nothing but a member of the query is its text', () => {
    expect(render('{{this}}', 'warm socks')).toEqual(['warm socks']);
  });
});

describe('a template is refused at once, with the place that is wrong', () => {
  test.each([
    ['{{#if x}}', 'line 1, column 10: a block or an expression is not closed'],
    ['x\n {{#if a}}{{/each}}', "line 2, column 5: if doesn't match each"],
    ['{{foo }', 'line 1, column 6: this is not the syntax of Handlebars'],
    ['{{> part}}', 'partials and decorators are not taken'],
    ['{{scrubHTML x}}', 'there is no helper "scrubHTML" that works here. Did you mean "scrubHtml"?'],
    ['{{#each}}x{{/each}}', '#each takes one value'],
    ['{{#eq a}}x{{/eq}}', 'eq takes 2 arguments, not 1'],
    ['{{encodeToon x lengthmarker=true}}', 'Did you mean "lengthMarker"?'],
    ['{{#each x}}{{@indx}}{{/each}}', 'there is no variable "@indx"'],
    ['{{if (media url=x)}}', 'there is no helper "if" that works here'],
    ['{{scrubHtml (media url=x)}}', 'there is no helper "media" that works here'],
    ['{{media}}{{media url=a as="text" b=1}}', 'there is no option "b" here'],
    ['{{{{raw}}}} {{x}} {{{{/raw}}}}', 'sections with four braces are not taken'],
    [`${'{{#if a}}'.repeat(40)}${'{{/if}}'.repeat(40)}`, 'blocks nest deeper than 32'],
    [`${'{{#if a}}'.repeat(3_000)}`, 'its blocks nest too deep'],
    [`{{a${'.b'.repeat(40_000)}}}`, 'it has more than 32768 characters'],
  ])('%.60s', (template, sentence) => {
    expect(() => parseTemplate(template)).toThrow(sentence);
    expect(() => parseTemplate(template)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });
});

describe('a template that asks for too much is stopped', () => {
  const list = Array.from({ length: 100 }, (_, at) => at);
  const tooMuch = expect.objectContaining({ code: 'limit_exceeded' });

  test('after its steps: loops in loops', () => {
    const nested = `${'{{#each @root.list}}'.repeat(8)}x${'{{/each}}'.repeat(8)}`;
    expect(() => render(nested, { list })).toThrow(tooMuch);
    const empty = `${'{{#each @root.list}}'.repeat(8)}${'{{/each}}'.repeat(8)}`;
    expect(() => render(empty, { list })).toThrow(tooMuch);
  });

  test('after its output: the whole document again and again', () => {
    const text = 'x'.repeat(100_000);
    expect(() => render('{{#each list}}{{@root.text}}{{/each}}', { list, text })).toThrow('its output has more than');
  });

  test('where helpers would read too much', () => {
    const html = '<p>'.repeat(100_000);
    expect(() => render('{{#each list}}{{scrubHtml @root.html}}{{/each}}', { list, html })).toThrow(tooMuch);
    expect(() => render('{{#each list}}{{encodeToon @root}}{{/each}}', { list, html })).toThrow(tooMuch);
  });

  test('where it names more media than a request may have', () => {
    expect(() => render('{{#each list}}{{media url="x:y"}}{{/each}}', { list })).toThrow('more than 64 media');
  });
});

describe('scrubHtml', () => {
  test('gives the text of broken HTML in time that grows with its length', () => {
    expect(scrubHtml('a<p>b<div>c</p><b>d<script>e')).toBe('a\nb\nc\nd');
    expect(scrubHtml('<'.repeat(200_000)).length).toBeLessThanOrEqual(200_000);
    expect(scrubHtml('<div>'.repeat(50_000))).toBe('');
    expect(scrubHtml('x &lt;b&gt; &#x41; &nope; \u0000')).toContain('x <b> A &nope;');
  });
});

describe('encodeToon', () => {
  test('marks every length, and nothing in the values', () => {
    const value = { a: [1], 'b[2]': ['x[3]: y', '[4]'], c: [{ d: [], e: 'f[5]' }], g: ['[1]{a}:', 'line\n[7]:'] };
    const marked = encodeToon(value, {});
    expect(marked.replaceAll('[#', '[')).toBe(encodeToon(value, { lengthMarker: false }));
    expect(marked.match(/\[#\d/g)).toHaveLength(4);
  });

  test('says the same as the data: reading it back gives them again', () => {
    const data = fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>);
    fc.assert(
      fc.property(data, (value) => {
        const plain: unknown = JSON.parse(
          JSON.stringify(value).replaceAll('"__proto__"', '"proto"').replaceAll('-0', '0'),
        );
        const text = encodeToon(plain, { lengthMarker: false });
        expect(decode(text) as unknown).toEqual(plain);
        expect(
          decode(
            encodeToon(plain, {}).replaceAll(/^((?: *- )* *(?:[A-Za-z_][\w.]*|"(?:[^"\\]|\\.)*")?\[)#/gm, '$1'),
          ) as unknown,
        ).toEqual(plain);
      }),
    );
  });

  test.each([
    ['{{encodeToon this indent=-1}}', '"indent" must be an integer from 0 to 16'],
    ['{{encodeToon this indent="2"}}', '"indent" must be an integer'],
    ['{{encodeToon this delimiter=";"}}', '"delimiter" must be a comma, "tab" or "pipe"'],
    ['{{encodeToon this lengthMarker="#"}}', '"lengthMarker" must be true or false'],
  ])('%s is refused', (template, sentence) => {
    expect(() => render(template, { a: 1 })).toThrow(sentence);
  });
});

describe('the templates', () => {
  test('are parsed once, and again when nobody has used them for five minutes', async () => {
    const clock = new FakeClock();
    const templates = new Templates(clock, 5 * minute);
    templates.check('{{a}}');
    expect(templates.render('{{a}}', { a: 1 })).toEqual(['1']);
    expect(templates.kept).toBe(1);
    await clock.advance(4 * minute);
    templates.check('{{a}}');
    await clock.advance(4 * minute);
    expect(templates.kept).toBe(1);
    await clock.advance(6 * minute);
    expect(templates.kept).toBe(0);
  });
});
