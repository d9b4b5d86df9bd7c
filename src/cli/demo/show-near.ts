import type { DemoClient } from './demo-client.ts';
import { heading, showHit } from './show-searches.ts';
import type { Terminal } from './terminal.ts';

const hitsShown = 5;
/** A first sense of WordNet 3.1. */
const bird = { word: 'bird', key: 'n:01505702' };
const word = 'water';

/** A query over words and pointers: glosses with a word, those first that are kinds of something. */
export async function showNear(
  client: DemoClient,
  { table, graph }: { table: string; graph: string },
  terminal: Terminal,
): Promise<void> {
  const kinds = {
    type: 'traverse',
    index_name: graph,
    start_nodes: { keys: [bird.key] },
    params: { edge_types: ['hyponym'], max_depth: 8, max_results: 1 },
    leg: true,
  };
  const answer = await client.query(table, {
    full_text_search: { match: word, field: 'gloss' },
    graph_searches: { kinds },
    limit: hitsShown,
  });
  heading(terminal, 'Words and pointers in one query', `${word}, among the kinds of ${bird.word}`, answer);
  for (const hit of answer.hits) showHit(terminal, hit);
}
