/**
 * The least that an HTTP server on Bun can do: a POST body is parsed as JSON and dropped, and every request gets the bytes of
 * `--body`. `--port PORT --body FILE`
 */
import { scriptArguments } from '../engines/script-arguments.ts';

const { port, body } = scriptArguments('port', 'body');
const answer = await Bun.file(body).bytes();
const headers = { 'content-type': 'application/json' };

Bun.serve({
  port: Number(port),
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method === 'POST') await request.json();
    return new Response(answer, { headers });
  },
});
