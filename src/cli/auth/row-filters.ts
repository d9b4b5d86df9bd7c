import { ConfigError } from '../../config/config-error.ts';
import type { RowFilterEntry } from '../../protocol/auth/access.ts';
import type { ClientActionSpec } from '../client/client-verb.ts';
import { jsonOf, printEach, printJson } from '../client/client-verb.ts';
import { exitCodes } from '../verb.ts';
import { subjectPath } from './subject-path.ts';

const path = (subject: string, ...table: string[]) => subjectPath(subject, 'row-filters', ...table);

export const rowFilterActions: readonly ClientActionSpec[] = [
  {
    name: 'row-filters list',
    takes: ['SUBJECT'],
    help: 'Print the row filters of a user, role or group, by table.',
    run: async ({ call }, context, subject) => {
      const filters = (await call('GET', path(subject))) as unknown as readonly RowFilterEntry[];
      return printEach(context, filters, ({ table, filter }) => [table, JSON.stringify(filter)]);
    },
  },
  {
    name: 'row-filters get',
    takes: ['SUBJECT', 'TABLE'],
    help: 'Print the row filter for a table.',
    run: async ({ call }, context, subject, table) => printJson(context, await call('GET', path(subject, table))),
  },
  {
    name: 'row-filters set',
    takes: ['SUBJECT', 'TABLE'],
    help: 'Set which documents of a table exist for a user, role or group; * is every table.',
    async run({ call }, context, subject, table) {
      const filter = jsonOf(context, '--filter');
      if (filter === undefined) throw new ConfigError('give the filter in --filter or --file');
      return printJson(context, await call('PUT', path(subject, table), filter.text));
    },
  },
  {
    name: 'row-filters delete',
    takes: ['SUBJECT', 'TABLE'],
    help: 'Remove the row filter for a table.',
    run: async ({ call }, _context, subject, table) => {
      await call('DELETE', path(subject, table));
      return exitCodes.done;
    },
  },
];
