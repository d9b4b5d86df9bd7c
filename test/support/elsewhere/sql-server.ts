import { SQL } from 'bun';

const attemptsMax = 300;

/** Runs statements over a connection of its own; returns the rows of the last one. */
export async function executeSql(adapter: 'mysql' | 'postgres', url: string, statements: string[]): Promise<unknown[]> {
  const sql = new SQL({ adapter, url, max: 1 });
  try {
    let rows: unknown[] = [];
    for (const statement of statements) rows = [...(await sql.unsafe(statement))];
    return rows;
  } finally {
    await sql.close();
  }
}

/** Waits until the server takes a statement; fails when its process has ended. */
export async function untilItAnswers(server: Bun.Subprocess, ask: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await ask();
      return;
    } catch (error) {
      if (server.exitCode !== null || attempt === attemptsMax) throw error;
      await Bun.sleep(100);
    }
  }
}

/** Runs a command to its end; returns what it printed, and fails with its errors. */
export async function runCommand(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: 'pipe', stderr: 'pipe' });
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${errors}`);
  return output;
}
