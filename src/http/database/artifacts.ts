import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { shownArtifact } from '../../index-kinds/configuration/artifact-config.ts';
import { artifactEnrichment, artifactList } from '../../protocol/database/artifacts.ts';
import { jsonObject } from '../../protocol/database/tables.ts';
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
  },
  { additionalProperties: false },
);

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
      responses: { 200: { description: 'State, attempts, reason and source hash of each', schema: jsonObject } },
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
      responses: { 202: { description: 'They are tried again in the background', schema: jsonObject } },
      handler: async ({ params, body, caller }) => {
        const { limit = 100, key } = body ?? {};
        const what = { limit, ...(key === undefined ? {} : { key }) };
        const { scanned, reprocessed } = await trace.reprocess(params.table, params.artifact, what, caller);
        const status = reprocessed === 0 ? 'complete' : 'in_progress';
        const counts = { scanned, reprocessed, skipped: scanned - reprocessed, limit };
        return reply(202, {
          reprocess: 'triggered',
          reprocess_status: status,
          artifact_name: params.artifact,
          ...counts,
        });
      },
    }),
  ];
}
