import { Parser } from 'htmlparser2';

const hidden = new Set(['script', 'style', 'template']);
const blocks = new Set(
  (
    'address article aside blockquote dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 ' +
    'header hr li main nav ol p pre section table td th tr ul br title'
  ).split(' '),
);

/**
 * The text of a piece of HTML: scripts and styles are left out, block elements are lines of their own, and runs of white
 * space are one space, but for the lines of `pre`.
 */
export function scrubHtml(html: string): string {
  const pieces: string[] = [];
  let hiddenDepth = 0;
  let keptDepth = 0;
  const endLine = (name: string) => {
    if (blocks.has(name) && hiddenDepth === 0) pieces.push('\n');
  };
  const parser = new Parser({
    onopentagname(name) {
      if (hidden.has(name)) hiddenDepth += 1;
      if (name === 'pre') keptDepth += 1;
      endLine(name);
    },
    ontext(text) {
      if (hiddenDepth === 0) pieces.push(keptDepth > 0 ? text : text.replaceAll(/\s+/g, ' '));
    },
    onclosetag(name) {
      if (hidden.has(name)) hiddenDepth -= 1;
      if (name === 'pre') keptDepth -= 1;
      endLine(name);
    },
  });
  parser.end(html);
  return pieces
    .join('')
    .replaceAll(/ *\n[ \n]*/g, '\n')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
}
