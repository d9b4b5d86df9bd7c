import { Type } from '@sinclair/typebox';
import { limits } from '../../config/limits.ts';
import { indexDetails } from '../../protocol/database/index-details.ts';
import { indexPreview, indexPreviewRequest } from '../../protocol/database/index-preview.ts';
import { indexConfig } from '../../protocol/database/tables.ts';
import type { IndexPreviews } from '../../tables/indexes/index-preview.ts';
import type { IndexService } from '../../tables/indexes/index-service.ts';
import { reply } from '../listener/reply.ts';
import { defineRoute, type Route } from '../routing/route.ts';
import { renderIndexDetails } from './index-details.ts';

const dropQuery = Type.Object({
  keep_vectors: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Keep the vectors for the next index of this name and dimension, as when only the metric is to change. They go with ' +
        'the next drop of the name without this.',
    }),
  ),
});

export function indexRoutes(indexes: IndexService, previews: IndexPreviews): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables/:table/indexes',
      access: { table: 'read' },
      summary: "List a table's indexes with their state",
      tag: 'indexes',
      responses: { 200: { description: 'The indexes', schema: Type.Array(indexDetails) } },
      handler: async ({ params, caller }) => (await indexes.list(params.table, caller)).map(renderIndexDetails),
    }),
    defineRoute({
      method: 'GET',
      path: '/db/v1/tables/:table/indexes/:index',
      access: { table: 'read' },
      summary: 'Get an index with its state',
      tag: 'indexes',
      responses: { 200: { description: 'The index', schema: indexDetails } },
      handler: async ({ params, caller }) => renderIndexDetails(await indexes.get(params.table, params.index, caller)),
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/indexes/:index',
      access: { table: 'admin' },
      summary: 'Add an index; documents that are there already are indexed in the background',
      tag: 'indexes',
      body: { kind: 'json', schema: indexConfig, bytesMax: limits.smallBodyBytesMax, optional: true },
      responses: {
        200: { description: 'The index existed with this very configuration', schema: indexConfig },
        201: { description: 'Created', schema: indexConfig },
      },
      handler: async ({ params, body, caller }) => {
        const { created, config } = await indexes.create(params.table, params.index, body ?? {}, caller);
        return reply(created ? 201 : 200, config);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/db/v1/tables/:table/indexes/:index/preview',
      access: { table: 'admin' },
      summary: 'Tell what an index would embed of a few documents, and what all of them would cost; nothing is stored',
      description: 'The embedder is asked, and may have to be paid for these documents.',
      tag: 'indexes',
      body: { kind: 'json', schema: indexPreviewRequest, bytesMax: limits.smallBodyBytesMax, optional: true },
      responses: {
        200: { description: 'Texts, chunks, lengths of vectors, tokens and reasons', schema: indexPreview },
      },
      handler: ({ params, body, caller }) => previews.preview(params.table, params.index, body ?? {}, caller),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/db/v1/tables/:table/indexes/:index',
      access: { table: 'admin' },
      summary: 'Drop an index, and its vectors unless they are kept for the next one of the name and dimension',
      tag: 'indexes',
      query: dropQuery,
      responses: { 204: { description: 'Dropped' } },
      handler: async ({ params, query, caller }) => {
        await indexes.drop(params.table, params.index, caller, query.keep_vectors);
        return reply(204, undefined);
      },
    }),
  ];
}
