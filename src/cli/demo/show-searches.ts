import type { DemoAnswer, DemoClient, DemoHit } from './demo-client.ts';
import { bold, dim, fit, type Terminal } from './terminal.ts';

const hitsShown = 5;
const suggestionsShown = 4;
const wordColumns = 26;

/** The text that a user might type into the last search, key by key. */
const keystrokes = ['vol', 'volc', 'volcan', 'volcanic e', 'volcanic er'] as const;
const keystrokesWidth = Math.max(...keystrokes.map((typed) => typed.length));

/** The marks of a match in the terminal: the server is asked to mark it so. */
const marks = { pre: '[', post: ']' };

/** A word, a phrase, slips of the finger, counts, and a search that answers while it is typed, each with its time. */
export async function showSearches(client: DemoClient, table: string, terminal: Terminal): Promise<void> {
  await showWord(client, table, terminal, 'volcano');
  await showPhrase(client, table, terminal, 'body of water');
  await showSlips(client, table, terminal, 'volcannic erruption');
  await showCounts(client, table, terminal, 'light');
  await showTyping(client, table, terminal);
}

async function showWord(client: DemoClient, table: string, terminal: Terminal, word: string): Promise<void> {
  const answer = await client.query(table, {
    full_text_search: { query: `words:${word}^3 OR gloss:${word}` },
    limit: hitsShown,
  });
  heading(terminal, 'A word', word, answer);
  for (const hit of answer.hits) showHit(terminal, hit);
}

async function showPhrase(client: DemoClient, table: string, terminal: Terminal, phrase: string): Promise<void> {
  const answer = await client.query(table, {
    full_text_search: { query: `gloss:"${phrase}"` },
    limit: hitsShown,
  });
  heading(terminal, 'A phrase', `"${phrase}"`, answer);
  for (const hit of answer.hits) showHit(terminal, hit);
}

async function showSlips(client: DemoClient, table: string, terminal: Terminal, misspelt: string): Promise<void> {
  const answer = await client.query(table, {
    full_text_search: { match: misspelt, field: 'gloss', operator: 'and' },
    typo_tolerance: true,
    highlight: { fields: ['gloss'], fragments: 1, fragment_chars: 80, pre_tag: marks.pre, post_tag: marks.post },
    limit: hitsShown,
  });
  heading(terminal, 'With slips, matches marked', misspelt, answer);
  for (const hit of answer.hits) showHit(terminal, hit, hit.fragment);
}

async function showCounts(client: DemoClient, table: string, terminal: Terminal, word: string): Promise<void> {
  const answer = await client.query(table, {
    full_text_search: { match: word, field: 'gloss' },
    aggregations: { kinds: { type: 'terms', field: 'part_of_speech', size: 5 } },
    limit: 0,
  });
  heading(terminal, 'Counted by part of speech', word, answer);
  for (const { key, count } of answer.buckets.get('kinds') ?? []) {
    terminal.write(`  ${key.padEnd(wordColumns)}  ${dim(terminal, count.toLocaleString('en-US'))}\n`);
  }
}

async function showTyping(client: DemoClient, table: string, terminal: Terminal): Promise<void> {
  terminal.write(`\n${bold(terminal, 'Search as you type')}\n`);
  for (const typed of keystrokes) {
    const answer = await client.query(table, {
      full_text_search: { multi_match: { query: typed, type: 'bool_prefix', fields: ['words'] } },
      limit: suggestionsShown,
    });
    const words = new Set(answer.hits.map((hit) => matchingWord(hit, typed)));
    const suggestions = [...words].join(', ') || 'nothing';
    const time = `${answer.roundTripMs.toFixed(1)} ms`;
    const room = terminal.columns - keystrokesWidth - time.length - 6;
    const line = `${bold(terminal, typed.padEnd(keystrokesWidth))}  ${fit(suggestions, room).padEnd(room)}`;
    terminal.write(`  ${line}  ${dim(terminal, time)}\n`);
  }
}

/** Of the words of one sense the one that the typed text begins, else the first. */
function matchingWord(hit: DemoHit, typed: string): string {
  return hit.words.find((word) => word.toLowerCase().startsWith(typed)) ?? hit.words[0] ?? hit.key;
}

export function heading(terminal: Terminal, title: string, asked: string, answer: DemoAnswer): void {
  const atLeast = answer.relation === 'gte' ? 'at least ' : '';
  const found = `${atLeast}${answer.total.toLocaleString('en-US')} found in ${answer.roundTripMs.toFixed(1)} ms`;
  terminal.write(`\n${bold(terminal, `${title}: ${asked}`)}  ${dim(terminal, found)}\n`);
}

export function showHit(terminal: Terminal, hit: DemoHit, definition = hit.gloss.split('; "')[0] ?? hit.gloss): void {
  const words = fit(hit.words.join(', '), wordColumns).padEnd(wordColumns);
  terminal.write(`  ${words}  ${dim(terminal, fit(definition, terminal.columns - wordColumns - 4))}\n`);
}
