import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { shownArtifact } from '../../index-kinds/artifact-config.ts';
import { artifactEnrichment, artifactList } from '../../protocol/database/artifacts.ts';
import type { ArtifactService } from '../../tables/artifacts/artifact-service.ts';
import { defineRoute, type Route } from '../routing/route.ts';

const nothing = Type.Object({});

export function artifactRoutes(artifacts: ArtifactService): Route[] {
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
  ];
}
