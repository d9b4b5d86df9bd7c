/** What a caller needs for a route, by the contract: written by hand, so that a route's own word is not its proof. */
export type Need =
  | 'open'
  | 'anybody who is known'
  | 'table read'
  | 'table write'
  | 'table admin'
  | 'table admin, which need not exist'
  | 'inference read'
  | 'inference write'
  | 'user read'
  | 'user write'
  | 'user admin'
  | 'global admin';

/**
 * Every route that is built. Tables that a body names are checked where each is looked up (`callers.test.ts`); `/v1/...`
 * needs what `/ai/v1/...` needs.
 */
export const rows: Readonly<Record<Need, readonly string[]>> = {
  open: [
    'GET /docs',
    'GET /docs/start.js',
    'GET /docs/swagger-ui-bundle.js',
    'GET /docs/swagger-ui.css',
    'GET /healthz',
    'GET /livez',
    'GET /openapi.json',
    'GET /readyz',
  ],
  'anybody who is known': [
    'GET /auth/v1/me',
    'GET /auth/v1/users',
    'POST /db/v1/batch',
    'GET /db/v1/cluster',
    'GET /db/v1/connections',
    'POST /db/v1/query',
    'GET /db/v1/status',
    'GET /db/v1/tables',
    'POST /db/v1/transactions/commit',
  ],
  'table read': [
    'GET /db/v1/tables/:table',
    'POST /db/v1/tables/:table/documents',
    'GET /db/v1/tables/:table/documents/:key',
    'GET /db/v1/tables/:table/indexes',
    'GET /db/v1/tables/:table/indexes/:index',
    'POST /db/v1/tables/:table/lookup',
    'GET /db/v1/tables/:table/lookup/:key',
    'POST /db/v1/tables/:table/query',
  ],
  'table write': ['POST /db/v1/tables/:table/batch', 'POST /db/v1/tables/:table/merge'],
  'table admin': [
    'DELETE /db/v1/tables/:table',
    'POST /db/v1/tables/:table/indexes/:index',
    'DELETE /db/v1/tables/:table/indexes/:index',
    'PUT /db/v1/tables/:table/schema',
  ],
  'table admin, which need not exist': ['POST /db/v1/tables/:table'],
  'inference read': [
    'POST /ai/v1/audio/transcriptions',
    'POST /ai/v1/audio/translations',
    'POST /ai/v1/chat/completions',
    'POST /ai/v1/chunk',
    'POST /ai/v1/classify',
    'POST /ai/v1/completions',
    'POST /ai/v1/detokenize',
    'POST /ai/v1/embed',
    'POST /ai/v1/embeddings',
    'POST /ai/v1/extract',
    'POST /ai/v1/generate',
    'POST /ai/v1/generate/batch',
    'GET /ai/v1/models',
    'GET /ai/v1/models/:model',
    'GET /ai/v1/models/:model/:name',
    'POST /ai/v1/models/load',
    'POST /ai/v1/predict',
    'GET /ai/v1/predictors',
    'POST /ai/v1/read',
    'POST /ai/v1/recognize',
    'POST /ai/v1/rerank',
    'POST /ai/v1/rerank_multimodal',
    'POST /ai/v1/responses',
    'GET /ai/v1/responses/:id',
    'DELETE /ai/v1/responses/:id',
    'POST /ai/v1/responses/:id/cancel',
    'POST /ai/v1/rewrite',
    'POST /ai/v1/tokenize',
    'POST /ai/v1/transcribe',
    'POST /api/chat',
    'POST /api/embed',
    'POST /api/embeddings',
    'POST /api/generate',
    'GET /api/ps',
    'POST /api/show',
    'GET /api/tags',
    'GET /api/version',
    'POST /detokenize',
    'POST /embed',
    'GET /info',
    'GET /ml/v1/models',
    'POST /ml/v1/predict',
    'GET /ml/v1/predictors',
    'POST /rerank',
    'POST /tokenize',
    'POST /v2/rerank',
  ],
  'inference write': [
    'POST /ai/v1/models/unload',
    'DELETE /api/delete',
    'POST /api/pull',
    'POST /db/v1/connections/:connection/inference/:operation',
    'GET /db/v1/connections/:connection/partner/models',
    'POST /db/v1/connections/:connection/partner/disconnect',
    'GET /db/v1/connections/partner/accounts',
    'GET /db/v1/connections/partner/attempts/:attempt',
    'POST /db/v1/connections/partner/authorize',
  ],
  'user read': [
    'GET /auth/v1/users/:user',
    'GET /auth/v1/users/:user/api-keys',
    'GET /auth/v1/users/:user/permissions',
    'GET /auth/v1/users/:user/roles',
    'GET /auth/v1/users/:user/row-filters',
    'GET /auth/v1/users/:user/row-filters/:table',
  ],
  'user write': [
    'POST /auth/v1/users/:user/api-keys',
    'DELETE /auth/v1/users/:user/api-keys/:key',
    'PUT /auth/v1/users/:user/password',
  ],
  'user admin': [
    'POST /auth/v1/users/:user',
    'DELETE /auth/v1/users/:user',
    'POST /auth/v1/users/:user/permissions',
    'DELETE /auth/v1/users/:user/permissions',
  ],
  'global admin': [
    'GET /auth/v1/subjects',
    'GET /auth/v1/subjects/:subject/permissions',
    'POST /auth/v1/subjects/:subject/permissions',
    'DELETE /auth/v1/subjects/:subject/permissions',
    'GET /auth/v1/subjects/:subject/row-filters',
    'GET /auth/v1/subjects/:subject/row-filters/:table',
    'PUT /auth/v1/subjects/:subject/row-filters/:table',
    'DELETE /auth/v1/subjects/:subject/row-filters/:table',
    'POST /auth/v1/users/:user/roles',
    'DELETE /auth/v1/users/:user/roles',
    'PUT /auth/v1/users/:user/row-filters/:table',
    'DELETE /auth/v1/users/:user/row-filters/:table',
    'GET /db/v1/secrets',
    'PUT /db/v1/secrets/:key',
    'DELETE /db/v1/secrets/:key',
  ],
};
