import { readFileSync } from 'node:fs';
import { limits } from '../src/config/limits.ts';
import type { NamedSection } from '../src/config/named-sections/named-sections.ts';
import { sections } from '../src/config/named-sections/sections.ts';
import { type Option, variableOf } from '../src/config/option.ts';
import { options } from '../src/config/options.ts';
import { allRoutes, type RouteServices } from '../src/http/routing/all-routes.ts';
import { renderOpenApi } from '../src/http/routing/openapi.ts';
import { type MetricDefinition, metricDefinitions } from '../src/observability/metric-definitions.ts';
import { errorCodes } from '../src/protocol/error-codes.ts';

const notice = '<!-- Written by `bun run generate`. Do not edit. -->';
const packageFile = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** Every generated document by its path from the root of the repository. */
export function generatedDocuments(): Map<string, string> {
  return new Map([
    ['docs/configuration.md', configurationPage()],
    ['docs/errors.md', errorsPage()],
    ['docs/metrics.md', metricsPage()],
    ['docs/openapi.json', openApi()],
  ]);
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

function configurationPage(): string {
  const rows = (Object.values(options) as Option<unknown>[]).map((option) => [
    `\`${option.key}\``,
    option.flag === undefined ? '' : `\`${option.flag}\``,
    `\`${variableOf(option.key)}\`${option.secret ? ', `_FILE`' : ''}`,
    option.kind.name,
    option.default === undefined ? '' : `\`${option.kind.write(option.default)}\``,
    `${option.help}${option.reloadable ? ' Reloaded on SIGHUP.' : ''}`,
  ]);
  return `${notice}
# Configuration

A value comes from the first of: command line flag, environment variable, configuration file (\`--config FILE\` or
\`SUNDEW__CONFIG\`; YAML, or JSON when its name ends in \`.json\`), default. \`sundew config show --origin\` prints every
value with the layer that it comes from. Durations are written \`30s\`, \`5m\`, \`24h\`, \`7d\`, sizes \`512MiB\`. A key that
does not exist is an error; a top key of the file that nothing is known of is left out, with a warning.

${table(['key', 'flag', 'variable', 'kind', 'default', 'meaning'], rows)}

## Named sections

Each entry has a name of the operator's: letters and digits with single \`-\` or \`_\` between them. Its variables have the
name in capitals, with \`_\` for \`-\`; a variable alone makes an entry too. All of it is reloaded on SIGHUP.

A credential may refer to a secret, \`\${secret:KEY}\`, or to a variable of the environment that \`secrets.variables\` lists,
\`\${NAME}\`. References are kept and shown as they are written, and replaced when the credential is used.

${(Object.values(sections) as NamedSection[]).map(sectionPart).join('\n\n')}

## Reload

SIGHUP reads the configuration again. Options that are not reloaded keep their value until a restart; a configuration
that cannot be read changes nothing and is counted in \`/db/v1/status\`.

## Limits

Bounds that are the same for every server, by their name in \`src/config/limits.ts\`; the unit ends the name.

${table(
  ['limit', 'value'],
  Object.entries(limits).map(([name, value]) => [`\`${name}\``, value.toLocaleString('en-US')]),
)}
`;
}

function sectionPart({ key, help, members }: NamedSection): string {
  const rows = Object.values(members).map((option) => [
    `\`${option.key}\``,
    `\`${variableOf(`${key}.NAME.${option.key}`)}\`${option.secret ? ', `_FILE`' : ''}`,
    option.kind.name,
    option.default === undefined ? '' : `\`${option.kind.write(option.default)}\``,
    option.help,
  ]);
  const heads = [`key below \`${key}.NAME\``, 'variable', 'kind', 'default', 'meaning'];
  return `### \`${key}\`\n\n${help}\n\n${table(heads, rows)}`;
}

function errorsPage(): string {
  const rows = Object.entries(errorCodes).map(([code, [status, retryable, when]]) => [
    `\`${code}\``,
    String(status),
    retryable ? 'yes' : 'no',
    when,
  ]);
  return `${notice}
# Errors

Every error answer has the body

\`\`\`json
{"code": "table_not_found", "error": "...", "message": "...", "retryable": false}
\`\`\`

\`error\` repeats \`message\`. A retryable error has \`retry_after_ms\` (at least 1) and the headers \`Retry-After\` (seconds) and
\`retry-after-ms\`. Every answer carries \`x-request-id\`: the caller's when it sent one of at most 128 characters out of
\`A-Z a-z 0-9 . _ : / + = @ -\`, else a fresh one.

Under \`/ai/v1\` and \`/ml/v1\` the body is

\`\`\`json
{"error": "model_not_found: ...", "message": "...", "reason": "model_not_found", "retryable": false, "retry_after_ms": 0}
\`\`\`

where \`error\` begins with the code, \`reason\` is its class (\`invalid_input\`, \`timeout\`, \`unauthorized\`, else the
code), and the header \`x-should-retry\` repeats \`retryable\`.

${table(['code', 'status', 'retryable', 'when'], rows)}

## Answers of the runtime

What cannot be read as a request never reaches the server. The runtime answers it without a body and closes the
connection: 400 for a request line, a header or a length that is malformed and for a missing \`Host\`, 431 for a head of
more than 16 KiB, 505 for another version of the protocol. A connection whose first head is not complete within
10 seconds is closed without an answer.
`;
}

function metricsPage(): string {
  const rows = (Object.values(metricDefinitions) as MetricDefinition[]).map(({ name, kind, labels, help }) => [
    `\`${name}\``,
    kind,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ]);
  return `${notice}
# Metrics

\`GET /metrics\` on the metrics port (4200, loopback unless told otherwise) answers in the Prometheus text format 0.0.4.

${table(['name', 'kind', 'labels', 'meaning'], rows)}
`;
}

function openApi(): string {
  // Only the descriptions are read; no handler runs, so nothing needs to stand behind the routes.
  const routes = allRoutes({ inference: {} } as RouteServices, packageFile.version);
  return `${JSON.stringify(renderOpenApi(routes, packageFile.version), null, 2)}\n`;
}
