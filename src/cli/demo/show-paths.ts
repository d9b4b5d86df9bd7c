import type { DemoClient, DemoPath } from './demo-client.ts';
import { bold, dim, fit, type Terminal } from './terminal.ts';

/** First senses of nouns of WordNet 3.1. */
const pairs = [
  { from: { word: 'dog', key: 'n:02086723' }, to: { word: 'cat', key: 'n:02124272' } },
  { from: { word: 'piano', key: 'n:03934354' }, to: { word: 'violin', key: 'n:04544161' } },
] as const;
const wordColumns = 26;

/** How two words are related by what they are kinds of: up from the one, and down to the other. */
export async function showPaths(
  client: DemoClient,
  { table, graph }: { table: string; graph: string },
  terminal: Terminal,
): Promise<void> {
  for (const { from, to } of pairs) {
    const path = await client.shortestPath(table, graph, {
      source: from.key,
      target: to.key,
      edge_types: ['hypernym'],
      direction: 'both',
      max_depth: 30,
    });
    const title = bold(terminal, `From one word to another: ${from.word}, ${to.word}`);
    if (!path) terminal.write(`\n${title}  ${dim(terminal, 'no path')}\n`);
    else showPath(path, title, terminal);
  }
}

function showPath({ nodes, roundTripMs }: DemoPath, title: string, terminal: Terminal): void {
  const found = `${nodes.length - 1} steps in ${roundTripMs.toFixed(1)} ms`;
  terminal.write(`\n${title}  ${dim(terminal, found)}\n`);
  for (const { words, type, isBackwards } of nodes) {
    const how = type === '' ? '' : isBackwards ? 'of which a kind is' : 'is a kind of';
    terminal.write(`  ${how.padEnd(wordColumns)}  ${fit(words.join(', '), terminal.columns - wordColumns - 4)}\n`);
  }
}
