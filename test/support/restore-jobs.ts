import { pause, systemClock } from '../../src/lib/clock.ts';
import type { RestoreJobBody } from '../../src/protocol/database/restores.ts';
import type { TestServer } from './test-server.ts';

const pollMs = 20;
const deadlineMs = 90_000;

/** Waits until a restore has ended and returns it. */
export async function endOfRestore(server: Pick<TestServer, 'send'>, jobId: string): Promise<RestoreJobBody> {
  const startedMs = systemClock.monotonicMs();
  for (;;) {
    const { body } = await server.send<RestoreJobBody>('GET', `/db/v1/restore/jobs/${jobId}`);
    if (body.expires_at_ms !== undefined) return body;
    if (systemClock.monotonicMs() - startedMs > deadlineMs)
      throw new Error(`the restore hangs: ${JSON.stringify(body)}`);
    await pause(systemClock, pollMs);
  }
}

/** Asks for a restore and waits for its end. */
export async function restore(server: Pick<TestServer, 'send'>, body: unknown): Promise<RestoreJobBody> {
  const asked = await server.send<RestoreJobBody>('POST', '/db/v1/restore', body);
  if (asked.status !== 202) throw new Error(`refused: ${asked.status} ${JSON.stringify(asked.body)}`);
  return endOfRestore(server, asked.body.job_id);
}
