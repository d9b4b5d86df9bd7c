import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { shownArtifact } from '../../index-kinds/configuration/artifact-config.ts';
import { artifactEnrichment, artifactList, documentArtifacts } from '../../protocol/database/artifacts.ts';
import type { ArtifactService } from '../../tables/artifacts/artifact-service.ts';
import type { ArtifactTrace } from '../../tables/artifacts/artifact-trace.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const nothing = Type.Object({});
const reprocessMax = 10_000;
const reprocessRequest = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: reprocessMax, description: '100 when absent' })),
    key: Type.Optional(Type.String({ description: 'One document alone' })),
    next_key: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: 'Go on where an earlier answer has ended' }),
    ),
  },
  { additionalProperties: false },
);

const reprocessed = Type.Object({
  reprocess: Type.Literal('triggered'),
  reprocess_status: Type.Union([Type.Literal('complete'), Type.Literal('in_progress')], {
    description: '`complete` when no document had failed',
  }),
  artifact_name: Type.String(),
  scanned: Type.Integer({ description: 'Documents that were looked at' }),
  reprocessed: Type.Integer({ description: 'Those that are tried again now' }),
  skipped: Type.Integer({ description: 'Those that had not failed' }),
  failed: Type.Integer({ description: 'Those that cannot be tried again now, for the reasons in `failures`' }),
  limit: Type.Integer(),
  next_key: Type.Union([Type.String(), Type.Null()], {
    description: 'The first failed document that is left; a request with it goes on there',
  }),
  pending_shards: Type.Integer({ description: 'Ranges with failed documents that are left' }),
  failures: Type.Array(Type.Object({ shard_id: Type.String(), code: Type.String(), error: Type.String() })),
  shard_cursors: Type.Array(Type.Object({ shard_id: Type.String(), next_key: Type.String() }), {
    description: 'Of each of these ranges the first that is left',
  }),
});

export function artifactRoutes(artifacts: ArtifactService, trace: ArtifactTrace): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables/:table/artifacts',
      access: { table: 'read' },
      summary: "List a table's enrichments, those of its indexes included",
      tag: 'artifacts',
      responses: { 200: { description: 'The enrichments', schema: artifactList } },
      handler: ({ params, caller }) => ({
        table_name: params.table,
        artifacts: artifacts.list(params.table, caller).map(shownArtifact),
      }),
    }),
    defineRoute({
      method: 'PUT',
      path: '/db/v1/tables/:table/artifacts/:artifact/enrichment',
      access: { table: 'admin' },
      summary: 'Register an enrichment, or replace the one of its name',
      description: 'Documents that are there already are enriched in the background.',
      tag: 'artifacts',
      body: { kind: 'json', schema: artifactEnrichment, bytesMax: limits.smallBodyBytesMax },
      responses: { 200: { description: 'Registered', schema: nothing } },
      handler: async ({ params, body, caller }) => {
        await artifacts.put(params.table, params.artifact, body, caller);
        return {};
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/tables/:table/artifacts/:artifact/enrichment',
      access: { table: 'admin' },
      summary: 'Drop an enrichment with its artifacts; refused while another one is made from it',
      tag: 'artifacts',
      responses: { 200: { description: 'Dropped', schema: nothing } },
      handler: async ({ params, caller }) => {
        await artifacts.drop(params.table, params.artifact, caller);
        return {};
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables/:table/documents/:key/artifacts',
      access: { table: 'read' },
      summary: 'How far the artifacts of a document are, vectors of managed indexes included',
      tag: 'artifacts',
      responses: { 200: { description: 'State, attempts, reason and source hash of each', schema: documentArtifacts } },
      handler: async ({ params, caller }) => ({
        document_id: params.key,
        artifacts: await trace.of(params.table, params.key, caller),
      }),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/artifacts/:artifact/reprocess',
      access: { table: 'admin' },
      summary: 'Try artifacts again that could not be made',
      tag: 'artifacts',
      body: { kind: 'json', schema: reprocessRequest, bytesMax: limits.smallBodyBytesMax, optional: true },
      responses: { 202: { description: 'They are tried again in the background', schema: reprocessed } },
      handler: async ({ params: { table, artifact }, body, caller }) => {
        const { limit = 100, key, next_key: from } = body ?? {};
        const what = { limit, key, from: from ?? undefined };
        const { cursors, failures, ...counts } = await trace.reprocess(table, artifact, what, caller);
        const isOver = counts.reprocessed === 0 && cursors.length + failures.length === 0;
        return reply(202, {
          reprocess: 'triggered',
          reprocess_status: isOver ? 'complete' : 'in_progress',
          artifact_name: artifact,
          ...counts,
          limit,
          next_key: cursors[0]?.next_key ?? null,
          pending_shards: cursors.length + failures.length,
          failures: [...failures],
          shard_cursors: [...cursors],
        });
      },
    }),
  ];
}
