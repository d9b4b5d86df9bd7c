import { jsonLines } from '../processes/line-process.ts';

/** The commands that load an engine; the same for ours and for every peer. */
export interface LoadCommand {
  op: 'load';
  /** A GGUF file. */
  path: string;
  /** 0: ours chooses. */
  threads: number;
  /** For several tokens at a time; as `threads` where it is missing. Ours chooses by itself. */
  batchThreads?: number;
  sequences: number;
  contextTokens: number;
}

export interface GenerateCommand {
  op: 'generate';
  /** One output for each; they are made side by side where there are sequences. */
  prompts: string[];
  tokens: number;
  /** Whether the states of prompts are kept and used. */
  cache: boolean;
}

export interface GenerateAnswer {
  /** Of all outputs. */
  tokens: number;
  /** From the first token on; of the slowest output. */
  decodeMs: number;
  /** Time on the processor from the first token on: what counts on a machine that others use too. */
  decodeCpuMs: number;
  prefillMs: number;
  /** Of ours: time on the processor up to the first token, and tokens of the prompts. */
  prefillCpuMs?: number;
  promptTokens?: number;
  /** All together. */
  wallMs: number;
  cachedTokens: number;
}

/** Threads for one token and for several, where the engine has chosen. */
export interface LoadAnswer {
  threads: number;
  batchThreads: number;
}

export interface GenerationEngine {
  load(command: LoadCommand): Promise<LoadAnswer>;
  generate(command: GenerateCommand): Promise<GenerateAnswer>;
}

/** Milliseconds that this process has spent on processors. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Obeys commands from standard input until it ends. */
export async function serveGenerationEngine(engine: GenerationEngine): Promise<void> {
  for await (const line of jsonLines(Bun.stdin.stream())) {
    const command = JSON.parse(line) as LoadCommand | GenerateCommand;
    const answer = command.op === 'load' ? await engine.load(command) : await engine.generate(command);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
}
