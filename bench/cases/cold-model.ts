import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { cpuUsOf } from '../processes/process-cpu.ts';
import { modelsDirectory, pulledModel } from '../processes/pulled-model.ts';
import { SundewServer } from '../processes/sundew-server.ts';

const model = 'smollm2-135m-instruct';

export const coldModel: BenchCase = {
  name: 'cold-model',
  summary: 'from the first request for a model that is not loaded to the first token of its answer, and what it takes',
  run,
};

/** Every turn has a server of its own, so that the model is loaded in a process of its own; its file is in the page cache. */
async function run({ placement, pairs }: BenchContext): Promise<Comparison[]> {
  const { directory, weights } = await pulledModel('generators', model);
  const fileBytes = statSync(join(directory, weights)).size;
  const [first, next, cpu, memory]: number[][] = [[], [], [], []];
  for (let turn = 0; turn < pairs; turn += 1) {
    await using server = await SundewServer.start({ placement, arguments: ['--models-dir', modelsDirectory] });
    const { process } = server;
    const idleUs = process.cpuUs();
    first?.push(await untilFirstToken(server.port));
    const children = childrenOf(process.pid);
    const childrenUs = children.reduce((sum, child) => sum + cpuUsOf(child), 0);
    cpu?.push((process.cpuUs() - idleUs + childrenUs) / 1_000);
    memory?.push(children.reduce((sum, child) => sum + peakBytesOf(child), 0) / fileBytes);
    next?.push(await untilFirstToken(server.port));
  }
  const notes = { model, fileBytes };
  return [
    compare({ name: 'first-token', unit: 'ms', ours: first ?? [], aim: { kind: 'at_most', value: 1_500 }, notes }),
    compare({ name: 'next-first-token', unit: 'ms', ours: next ?? [], notes }),
    // With the fifteen tokens that follow the first.
    compare({ name: 'cpu', unit: 'ms', ours: cpu ?? [], notes }),
    compare({ name: 'memory', unit: 'x of its file', ours: memory ?? [], aim: { kind: 'at_most', value: 3 }, notes }),
  ];
}

/** Milliseconds from the request to the first text of a streamed answer, which is read to its end. */
async function untilFirstToken(port: number): Promise<number> {
  const started = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/ai/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({
      model,
      stream: true,
      max_tokens: 16,
      messages: [{ role: 'user', content: 'Name three colours.' }],
    }),
  });
  if (response.status !== 200 || response.body === null) throw new Error(`${response.status} ${await response.text()}`);
  const decoder = new TextDecoder();
  let [text, firstMs] = ['', 0];
  for await (const bytes of response.body) {
    text += decoder.decode(bytes, { stream: true });
    if (firstMs === 0 && /"content":"[^"]/.test(text)) firstMs = performance.now() - started;
  }
  if (firstMs === 0) throw new Error(`no token came: ${text}`);
  return firstMs;
}

function childrenOf(pid: number): number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const lists = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1'));
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

/** The most that a process has had resident at a time, its part of mapped files included. */
function peakBytesOf(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) * 1_024;
}
