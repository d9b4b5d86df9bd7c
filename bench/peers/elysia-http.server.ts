/**
 * A bare Elysia application with one hook before and one after each request, as any application has them to count and to
 * log: every request is answered with the bytes of `--body`. `--port PORT --body FILE`
 */
import { Elysia } from 'elysia';
import { scriptArguments } from '../engines/script-arguments.ts';

const { port, body } = scriptArguments('port', 'body');
const answer = await Bun.file(body).bytes();
const requests = { begun: 0, answered: 0 };

function respond({ set }: { set: { headers: Record<string, unknown> } }) {
  set.headers['content-type'] = 'application/json';
  return answer;
}

new Elysia()
  .onRequest(() => {
    requests.begun += 1;
  })
  .onAfterResponse(() => {
    requests.answered += 1;
  })
  .get('/', respond)
  .get('/healthz', respond)
  .get('/db/v1/tables/:table/lookup/:key', respond)
  .post('/db/v1/tables/:table/query', respond, { parse: 'json' })
  .listen({ port: Number(port), hostname: '127.0.0.1' });
