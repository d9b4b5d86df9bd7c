import { ConfigError } from '../../config/config-error.ts';
import { type DatabaseCalls, RefusedError } from '../database-calls.ts';
import { exitCodes, type VerbContext } from '../verb.ts';
import { clientFlags, clientVerb, countOf, given, jsonOf, printEach, printJson, tablePath } from './client-verb.ts';

interface Enrichment {
  readonly name: string;
  readonly kind: string;
}

interface TracedArtifact extends Enrichment {
  readonly state: string;
  readonly attempts: number;
  readonly reason?: string;
}

type Database = Pick<DatabaseCalls, 'call'>;

/** `sundew artifact`: the enrichments of a table, and what became of them. */
export const artifact = clientVerb({
  name: 'artifact',
  summary: 'Register, list, show and drop the enrichments of a table, and have failed ones tried again.',
  actions: [
    {
      name: 'list',
      takes: ['TABLE'],
      help: 'Print the enrichments of a table; with --document how far those of one document are.',
      run: list,
    },
    { name: 'get', takes: ['TABLE', 'ARTIFACT'], help: 'Print an enrichment.', run: get },
    {
      name: 'put',
      takes: ['TABLE', 'ARTIFACT'],
      help: 'Register an enrichment, or replace the one of its name.',
      async run({ call }, context, table, name) {
        const enrichment = jsonOf(context, '--body');
        if (enrichment === undefined) throw new ConfigError('give the enrichment in --body or --file');
        await call('PUT', tablePath(table, 'artifacts', name, 'enrichment'), enrichment.text);
        return exitCodes.done;
      },
    },
    {
      name: 'delete',
      takes: ['TABLE', 'ARTIFACT'],
      help: 'Drop an enrichment with its artifacts.',
      run: async ({ call }, _context, table, name) => {
        await call('DELETE', tablePath(table, 'artifacts', name, 'enrichment'));
        return exitCodes.done;
      },
    },
    {
      name: 'reprocess',
      takes: ['TABLE', 'ARTIFACT'],
      help: 'Have artifacts that could not be made tried again.',
      run: reprocess,
    },
  ],
  flags: [
    { flag: '--body', value: 'JSON', of: ['put'], help: 'The enrichment.' },
    { flag: '--file', value: 'FILE', of: ['put'], help: 'A file with the enrichment.' },
    { flag: '--document', value: 'KEY', of: ['list', 'reprocess'], help: 'Of this document alone.' },
    { flag: '--limit', value: 'INTEGER', of: ['reprocess'], help: 'Documents at most; 100 unless given.' },
    { flag: '--next-key', value: 'KEY', of: ['reprocess'], help: 'Go on at the `next_key` of an earlier answer.' },
    { flag: '--json', of: ['list'], help: 'One JSON object a line.' },
    ...clientFlags,
  ],
});

async function list({ call }: Database, context: VerbContext, table: string): Promise<number> {
  const key = context.args.flags.get('--document');
  if (key === undefined) return printEach(context, await enrichmentsOf(call, table), ({ name, kind }) => [name, kind]);
  const { artifacts } = await call('GET', tablePath(table, 'documents', key, 'artifacts'));
  return printEach(context, artifacts as readonly TracedArtifact[], ({ name, kind, state, attempts, reason }) => [
    name,
    kind,
    state,
    attempts,
    reason ?? '',
  ]);
}

async function get({ call }: Database, context: VerbContext, table: string, name: string): Promise<number> {
  const found = (await enrichmentsOf(call, table)).find((each) => each.name === name);
  if (found === undefined) {
    throw new RefusedError(`artifact_not_found: the table "${table}" has no enrichment "${name}"`, false);
  }
  return printJson(context, found);
}

async function enrichmentsOf(call: DatabaseCalls['call'], table: string): Promise<readonly Enrichment[]> {
  return (await call('GET', tablePath(table, 'artifacts'))).artifacts as readonly Enrichment[];
}

async function reprocess({ call }: Database, context: VerbContext, table: string, name: string): Promise<number> {
  const { flags } = context.args;
  const [key, from] = [flags.get('--document'), flags.get('--next-key')];
  if (key !== undefined && from !== undefined) throw new ConfigError('give --document or --next-key, not both');
  const asked = given({ limit: countOf(context, '--limit', 1), key, next_key: from });
  const told = await call('POST', tablePath(table, 'artifacts', name, 'reprocess'), asked);
  printJson(context, told);
  return (told.failures as readonly unknown[]).length === 0 ? exitCodes.done : exitCodes.retry;
}
