import { MiB } from '../../lib/units.ts';
import { allowedVariables } from '../named-sections/credential-kinds.ts';
import { option, optional } from '../option.ts';
import { flag, integer, size, text } from '../value-kind.ts';

/** Options of authentication, the audit log and secrets. */
export const accessOptions = {
  authEnabled: option({
    key: 'auth.enabled',
    flag: '--auth',
    kind: flag(),
    default: false,
    help: 'Whether every request needs a credential. The first start with it prints a key of the user `admin`, once.',
    aliases: ['enable_auth', 'auth_enabled'],
  }),
  adminPassword: optional({
    key: 'auth.admin_password',
    kind: text(),
    secret: true,
    help: 'Password of the user `admin` that the first start with `auth.enabled` makes, in place of the printed key. Later starts leave it unread.',
  }),
  auditFile: optional({
    key: 'audit.file',
    kind: text('path'),
    help: 'File of the audit log, one JSON object for each change and each refused request; `none` for none. With `auth.enabled` it is `audit.jsonl` in the data directory unless given.',
  }),
  auditReads: option({
    key: 'audit.reads',
    kind: flag(),
    default: false,
    help: 'Whether the audit log also has requests that only read.',
    reloadable: true,
  }),
  auditFileBytes: option({
    key: 'audit.max_size',
    kind: size(64 * 1024, 64 * 1024 * MiB),
    default: 64 * MiB,
    help: 'Size beyond which the file of the audit log is put aside, as `FILE.1`, and a new one is begun.',
  }),
  auditFilesKept: option({
    key: 'audit.files_kept',
    kind: integer(0, 1_000),
    default: 10,
    help: 'Files of the audit log that are kept beside the current one.',
  }),
  secretsFile: optional({
    key: 'secrets.file',
    kind: text('path'),
    help: 'File of the secrets; `secret-store.json` in the data directory unless given. Read again when it changes.',
  }),
  credentialVariables: option({
    key: 'secrets.variables',
    kind: allowedVariables(),
    default: [
      { name: 'OPENAI_API_KEY', hosts: ['api.openai.com'] },
      { name: 'OPENROUTER_API_KEY', hosts: ['openrouter.ai'] },
      { name: 'GEMINI_API_KEY', hosts: ['generativelanguage.googleapis.com'] },
      { name: 'COHERE_API_KEY', hosts: ['api.cohere.com'] },
      { name: 'AWS_ACCESS_KEY_ID', hosts: ['bedrock-runtime.*.amazonaws.com'] },
      { name: 'AWS_SECRET_ACCESS_KEY', hosts: ['bedrock-runtime.*.amazonaws.com'] },
      { name: 'AWS_SESSION_TOKEN', hosts: ['bedrock-runtime.*.amazonaws.com'] },
    ],
    help: 'Variables that credentials may refer to as `${NAME}`, or as `${secret:KEY}` whose name in capitals they have; `NAME@HOST` for a value that may go to that host only.',
  }),
} as const;
