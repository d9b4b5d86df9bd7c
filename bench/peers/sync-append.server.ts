/**
 * The floor of a durable write over HTTP: each POST is parsed, 4 KiB are appended to a file, fdatasync, answer.
 * `--port PORT --directory DIRECTORY`
 */
import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { scriptArguments } from '../engines/script-arguments.ts';

const { port, directory } = scriptArguments('port', 'directory');
const file = openSync(join(directory, 'append'), 'a');
const block = Buffer.alloc(4_096, 0x5a);
const answer = '{"status":"committed","inserted":1,"deleted":0,"transformed":0}';
const headers = { 'content-type': 'application/json' };

Bun.serve({
  port: Number(port),
  hostname: '127.0.0.1',
  async fetch(request) {
    if (request.method !== 'POST') return new Response('ready');
    await request.json();
    writeSync(file, block);
    fdatasyncSync(file);
    return new Response(answer, { status: 201, headers });
  },
});
