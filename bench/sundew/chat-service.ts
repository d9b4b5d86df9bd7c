/**
 * Our inference server, and in the same process a caller of its generator without HTTP: what a program that embeds it
 * would do. Answers a line with the port, then each line of JSON with one of JSON.
 * `--models DIRECTORY`
 */
import { limitsOf, loadConfig } from '../../src/config/load.ts';
import { RunningConfig } from '../../src/config/reload.ts';
import { readChatRequest } from '../../src/http/inference/generation/chat-request.ts';
import { generateRoutes } from '../../src/http/inference/generation/generate.ts';
import { ServerListener } from '../../src/http/listener/server-listener.ts';
import { checkValue } from '../../src/http/routing/json-reader.ts';
import { generate } from '../../src/inference/generation/generate.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { GenerateResult } from '../../src/model-host/operations/generate.ts';
import { createLogger } from '../../src/observability/line-logger.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { Readiness } from '../../src/observability/readiness.ts';
import { writeToStandardError } from '../../src/observability/standard-error.ts';
import { generateRequestSchema } from '../../src/protocol/inference/generate.ts';
import { createApp } from '../../src/server/create-app.ts';
import { openInference, startInference } from '../../src/server/inference/open-inference.ts';
import { scriptArguments } from '../engines/script-arguments.ts';
import type { ChatCommand, ChatTurn } from '../processes/chat-service.ts';
import { jsonLines } from '../processes/line-process.ts';

const { models } = scriptArguments('models');
const flags = new Map([
  ['--models-dir', models],
  ['--allow-downloads', 'false'],
]);
const load = () => loadConfig({ flags, environment: {}, file: undefined, readFile: () => '' });
const { config } = new RunningConfig(load(), load);
const limits = limitsOf(config);
const metrics = new Metrics();
const clock = systemClock;
const logger = createLogger({ level: 'warn', format: 'json', clock, write: writeToStandardError });
const parts = { config, limits, clock, logger, metrics };
const inference = openInference(parts);
const running = startInference(inference, parts, new Readiness());
const listener = new ServerListener('127.0.0.1', 0);
listener.attach(
  createApp({ options: () => config, socket: listener, logger, clock, limits, metrics }, generateRoutes(inference), {
    permits: inference.admission,
  }),
);

/** How the last generation went, whoever asked for it. */
let last: GenerateResult | undefined;
const begin = inference.generations.begin.bind(inference.generations);
inference.generations.begin = (model) => {
  const watch = begin(model);
  return {
    ...watch,
    finished(result, finish) {
      last = result;
      watch.finished(result, finish);
    },
  };
};

for await (const line of jsonLines(Bun.stdin.stream())) {
  const command = JSON.parse(line) as ChatCommand;
  const answer = 'request' in command ? await consume(command.request) : state();
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await listener.stop();
await running.stop();

function state() {
  const { user, system } = process.cpuUsage();
  return { port: listener.port, cpuUs: user + system, prefillMs: last?.prefillMs ?? 0 };
}

async function consume(body: object): Promise<ChatTurn> {
  const request = readChatRequest(checkValue(body, generateRequestSchema));
  const before = process.cpuUsage();
  const startMs = performance.now();
  let firstMs = 0;
  let pieces = 0;
  const output = await generate(request, inference, {
    signal: new AbortController().signal,
    onPiece(_choice, deltas) {
      if (pieces === 0) firstMs = performance.now() - startMs;
      pieces += deltas.length;
    },
  });
  const { user, system } = process.cpuUsage(before);
  return {
    tokens: output.result.completionTokens,
    pieces,
    wallMs: performance.now() - startMs,
    firstMs,
    cpuUs: user + system,
    prefillMs: output.result.prefillMs,
  };
}
