import { dirname, join } from 'node:path';
import { Reply } from '../listener/reply.ts';
import { renderOpenApi } from './openapi.ts';
import { defineRoute, type Route } from './route.ts';

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Its addresses are relative: a proxy may put all of this below a path. */
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sundew: HTTP interface</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="interface"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

const startScript = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#interface', deepLinking: true, validatorUrl: null });
`;

/** `/openapi.json` of all `routes`, and `/docs`, a page that reads it without leaving this server. */
export function docsRoutes(routes: readonly Route[], version: string): Route[] {
  let document: string | undefined;
  const openApi: Route = defineRoute({
    method: 'GET',
    path: '/openapi.json',
    access: 'open',
    tag: 'Operations',
    summary: 'This interface as OpenAPI 3.1.',
    responses: { 200: { description: 'The document.', contentType: 'application/json' } },
    handler() {
      document ??= JSON.stringify(renderOpenApi([...routes, openApi], version));
      return new Reply(200, document);
    },
  });
  return [
    openApi,
    asset('/docs', 'text/html; charset=utf-8', () => page),
    asset('/docs/start.js', 'text/javascript; charset=utf-8', () => startScript),
    asset('/docs/swagger-ui.css', 'text/css; charset=utf-8', () => Bun.file(bundled('swagger-ui.css'))),
    asset('/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8', () =>
      Bun.file(bundled('swagger-ui-bundle.js')),
    ),
  ];
}

function bundled(name: string): string {
  return join(dirname(Bun.resolveSync('swagger-ui-dist/package.json', import.meta.dir)), name);
}

function asset(path: string, contentType: string, content: () => string | Bun.BunFile): Route {
  return defineRoute({
    method: 'GET',
    path,
    access: 'open',
    tag: 'Operations',
    summary: 'The documentation page.',
    hidden: true,
    responses: { 200: { description: 'A part of the page.', contentType } },
    handler: () =>
      new Response(content(), {
        headers: {
          'content-type': contentType,
          'content-security-policy': contentSecurityPolicy,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
        },
      }),
  });
}
