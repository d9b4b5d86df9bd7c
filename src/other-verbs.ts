import type { otherVerbNames, Verb } from './cli/verb.ts';

/** The verbs that run no server: a bundle of their own. */
export const otherVerbs: Readonly<Record<(typeof otherVerbNames)[number], () => Promise<Verb>>> = {
  config: async () => (await import('./cli/config-show.ts')).configShow,
  table: async () => (await import('./cli/client/table.ts')).table,
  index: async () => (await import('./cli/client/index-verb.ts')).index,
  artifact: async () => (await import('./cli/client/artifact.ts')).artifact,
  load: async () => (await import('./cli/client/load.ts')).load,
  insert: async () => (await import('./cli/client/documents.ts')).insert,
  delete: async () => (await import('./cli/client/documents.ts')).deleteVerb,
  lookup: async () => (await import('./cli/client/documents.ts')).lookup,
  query: async () => (await import('./cli/client/query.ts')).query,
  backup: async () => (await import('./cli/backup/backup.ts')).backup,
  restore: async () => (await import('./cli/backup/restore.ts')).restore,
  check: async () => (await import('./cli/check.ts')).check,
  keys: async () => (await import('./cli/keys.ts')).keys,
  auth: async () => (await import('./cli/auth/auth.ts')).auth,
  sql: async () => (await import('./cli/sql.ts')).sql,
  models: async () => (await import('./cli/models.ts')).models,
  demo: async () => (await import('./cli/demo.ts')).demo,
  completion: async () => (await import('./cli/completion/completion.ts')).completion,
};
