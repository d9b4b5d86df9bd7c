import { expect } from 'bun:test';

const readme = await Bun.file(new URL('../../../README.md', import.meta.url)).text();

/** The curls below a heading of the README, as they are written. */
export function readmeCommands(heading: string): string[] {
  const [, section = ''] = readme.split(`## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/```sh\n(curl [\s\S]*?)```/g)].map(([, command = '']) => command);
}

/** Runs a command of a page in a shell against the server at `url`, and reads its answer as JSON. */
export async function answerOf(
  command: string,
  url: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  // Only the port differs: the test's server has a free one.
  const script = command.replaceAll('http://127.0.0.1:8080', url);
  const shell = Bun.spawn(['bash', '-c', script], {
    env: { ...process.env, ...variables },
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const answer = await new Response(shell.stdout).text();
  expect(await shell.exited).toBe(0);
  return JSON.parse(answer);
}

/** The answers to the commands of "Ask in words": the question alone, then beside words. */
export const readmeAnswers = [
  { name: 'notes' },
  { status: 'committed', inserted: 3 },
  { responses: [{ hits: { hits: [{ _id: 'n:3' }] } }] },
  { responses: [{ hits: { hits: [{ _id: 'n:3' }, { _id: 'n:1' }] } }] },
];
