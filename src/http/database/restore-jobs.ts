import { Type } from '@sinclair/typebox';
import type { RestoreService } from '../../backup/restore/restore-service.ts';
import { restoreJob, restoreJobList, restorePhase, restoreScope } from '../../protocol/database/restores.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { restoreJobBody } from './restore-job-body.ts';

const tag = 'backup';
const pageDefault = 50;

/** The jobs that restore backups. */
export function restoreJobRoutes(restores: RestoreService): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/restore/jobs',
      access: 'authenticated',
      tag,
      summary: 'Restores, newest first',
      description:
        'Those that the caller could ask for: restores of tables that it administers, all for an administrator.',
      query: Type.Object({
        limit: Type.Optional(
          Type.Integer({ description: 'Jobs of a page', minimum: 1, maximum: 1_000, default: pageDefault }),
        ),
        cursor: Type.Optional(Type.String({ description: 'The `next_cursor` of the page before.' })),
        phase: Type.Optional(restorePhase),
        scope: Type.Optional(restoreScope),
      }),
      responses: { 200: { description: 'A page of jobs', schema: restoreJobList } },
      handler({ query, caller }) {
        const { limit = pageDefault, cursor, phase, scope } = query;
        const { jobs, nextCursor } = restores.list({ limit, cursor, phase, scope }, caller);
        return { jobs: jobs.map(restoreJobBody), next_cursor: nextCursor ?? '' };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/restore/jobs/:job',
      access: 'authenticated',
      tag,
      summary: 'One restore',
      responses: { 200: { description: 'The job', schema: restoreJob } },
      handler: ({ params, caller }) => restoreJobBody(restores.get(params.job, caller)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/restore/jobs/:job',
      access: 'authenticated',
      tag,
      summary: 'Ask a restore to stop',
      description:
        'One that waits ends at once, one that runs before it publishes another table that names no published one; tables that are published stay.',
      responses: { 200: { description: 'The job', schema: restoreJob } },
      handler: async ({ params, caller }) => restoreJobBody(await restores.cancel(params.job, caller)),
    }),
  ];
}
