/**
 * The server that one would write by hand: bare Bun.serve over bun:sqlite, one document a transaction, WAL with
 * synchronous=FULL, on the thread that serves. The request body is the one that our batch route takes. `--port PORT
 * --directory DIRECTORY`
 */
import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import { scriptArguments } from '../engines/script-arguments.ts';

const { port, directory } = scriptArguments('port', 'directory');
const database = new Database(join(directory, 'documents.db'), { strict: true });
database.run('PRAGMA journal_mode = WAL');
database.run('PRAGMA synchronous = FULL');
database.run('CREATE TABLE documents (key TEXT PRIMARY KEY, body TEXT NOT NULL)');
const insert = database.prepare(
  'INSERT INTO documents VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET body = excluded.body',
);
const answer = '{"status":"committed","inserted":1,"deleted":0,"transformed":0}';
const headers = { 'content-type': 'application/json' };

Bun.serve({
  port: Number(port),
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method !== 'POST') return new Response('ready');
    const { inserts } = (await request.json()) as { inserts: Record<string, unknown> };
    for (const [key, document] of Object.entries(inserts)) insert.run(key, JSON.stringify(document));
    return new Response(answer, { status: 201, headers });
  },
});
