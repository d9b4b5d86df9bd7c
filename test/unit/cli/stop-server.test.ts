import { expect, test } from 'bun:test';
import { stopServer } from '../../../src/cli/serve.ts';
import { limits } from '../../../src/config/limits.ts';
import { createLogger } from '../../../src/observability/line-logger.ts';
import { FakeClock } from '../../support/fake-clock.ts';

async function stopped(stop: () => Promise<void>, waitMs: number) {
  const clock = new FakeClock();
  const lines: string[] = [];
  const logger = createLogger({ level: 'info', format: 'text', clock, write: (line) => void lines.push(line) });
  const code = stopServer({ drain: () => Promise.resolve(), stop }, 1_000, { logger, clock });
  await clock.advance(waitMs);
  return { code: await code, log: lines.join('') };
}

test('a server that closes ends with 0', async () => {
  expect(await stopped(() => Promise.resolve(), 0)).toEqual({ code: 0, log: expect.stringContaining('stopped') });
});

test('a server that hangs while it closes still ends, and says so', async () => {
  const hung = await stopped(() => new Promise<void>(() => {}), limits.closeDeadlineMs);
  expect(hung).toEqual({ code: 1, log: expect.stringContaining('did not close in time') });
});
