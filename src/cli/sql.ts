import { ConfigError } from '../config/config-error.ts';
import { cellOf } from './cell.ts';
import { clientFlags, runClient } from './client/client-verb.ts';
import { bodyText, WrittenJson } from './client/written-json.ts';
import { exitCodes, type Verb } from './verb.ts';

interface Rows {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

/** `sundew sql STATEMENT [PARAMETER ...]`: reads relational tables of a running server or of a data directory at rest. */
export const sql: Verb = {
  name: 'sql',
  summary: 'Read relational tables by SQL, through a server or from a data directory that no server uses.',
  usage: 'STATEMENT [PARAMETER ...] [options]',
  flags: [{ flag: '--json', help: 'One JSON object a row; else columns with tabs between them.' }, ...clientFlags],
  async run(context) {
    const [statement, ...given] = context.args.positionals;
    if (statement === undefined) throw new ConfigError('usage: sundew sql STATEMENT [PARAMETER ...] [options]');
    return await runClient(context, async ({ call }) => {
      const parameters = new WrittenJson(`[${given.map(parameterOf).join(',')}]`);
      const answer = (await call('POST', '/db/v1/sql', bodyText({ sql: statement, parameters }))) as unknown as Rows;
      context.print(context.args.flags.has('--json') ? asObjects(answer) : asText(answer));
      return exitCodes.done;
    });
  },
};

/**
 * The JSON of a parameter. A number, true, false and null are what they are
 * there; else it is a text, which quotes make of a number.
 */
function parameterOf(word: string): string {
  try {
    const value: unknown = JSON.parse(word);
    if (typeof value !== 'object' || value === null) return word;
  } catch {
    // It is a text.
  }
  return JSON.stringify(word);
}

function asObjects({ columns, rows }: Rows): string {
  return rows
    .map((row) => `${JSON.stringify(Object.fromEntries(columns.map((name, at) => [name, row[at]])))}\n`)
    .join('');
}

function asText({ columns, rows }: Rows): string {
  return [columns, ...rows].map((row) => `${row.map(cellOf).join('\t')}\n`).join('');
}
