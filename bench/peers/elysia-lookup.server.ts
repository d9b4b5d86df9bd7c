/**
 * A bare Elysia application with one hook before and one after each request, as any application has them to count and to
 * log, that reads the body of a document from an SQLite file by its key. `--port PORT --database FILE`
 */
import { Database } from 'bun:sqlite';
import { Elysia } from 'elysia';
import { scriptArguments } from '../engines/script-arguments.ts';

const { port, database } = scriptArguments('port', 'database');
const documents = new Database(database, { readonly: true });
const bodyOf = documents.query<{ body: Uint8Array }, [string]>('SELECT body FROM documents WHERE key = ?');
const requests = { begun: 0, answered: 0 };

new Elysia()
  .onRequest(() => {
    requests.begun += 1;
  })
  .onAfterResponse(() => {
    requests.answered += 1;
  })
  .get('/', () => 'ready')
  .get('/db/v1/tables/:table/lookup/:key', ({ params, set }) => {
    const found = bodyOf.get(params.key);
    if (found === null) throw new Error('there is no such document');
    set.headers['content-type'] = 'application/json';
    return found.body;
  })
  .listen({ port: Number(port), hostname: '127.0.0.1' });
