import { runCommandLine } from '../../src/cli/run.ts';

/** Runs a command as a person types it, with these variables of the environment alone; what it printed and explained. */
export async function runCommand(
  verbs: Parameters<typeof runCommandLine>[0]['verbs'],
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ code: number; printed: string; explained: string }> {
  let [printed, explained] = ['', ''];
  const code = await runCommandLine({ verbs, version: '0' }, [...words], {
    environment,
    print: (text) => {
      printed += text;
    },
    explain: (text) => {
      explained += text;
    },
  });
  return { code, printed, explained };
}
