import { Type } from '@sinclair/typebox';
import packageFile from '../../../package.json' with { type: 'json' };
import { rawJson } from '../listener/reply.ts';
import { defineRoute } from './route.ts';

const { version } = packageFile;
const greeting = rawJson(200, JSON.stringify({ name: 'sundew', version, docs: '/docs', openapi: '/openapi.json' }));

/**
 * The answer to a browser, and to clients of Ollama that look whether a server is
 * there. The paths that wait for the other routes leave it out.
 */
export const frontDoor = defineRoute({
  method: 'GET',
  path: '/',
  access: 'open',
  tag: 'Operations',
  summary: 'The name of the server, and where it is documented.',
  responses: {
    200: {
      description: 'The server.',
      schema: Type.Object({
        name: Type.Literal('sundew'),
        version: Type.String(),
        docs: Type.String({ description: 'Path of the documentation page.' }),
        openapi: Type.String({ description: 'Path of this document.' }),
      }),
    },
  },
  handler: () => greeting,
});
