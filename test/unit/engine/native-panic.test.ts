import { expect, test } from 'bun:test';

const script = `
const { buildFrame, scanWrite, sectionEntries } = await import('./src/engine/write-frame.ts');
const { namesMatching } = await import('./src/engine/name-pattern.ts');
const bytes = new TextEncoder().encode('{"inserts":{"a":{"text":"' + 'x'.repeat(2_000_000) + '"}}}');
const calls = {
  'engine.call': () => namesMatching('^a', ['ab', 'b']),
  'engine.task': async () => {
    const entries = sectionEntries(await scanWrite(bytes, 'batch'), 0);
    return (await buildFrame(bytes, entries, { timestampMs: 1 })).byteLength > bytes.byteLength;
  },
};
const answers = [];
for (let round = 0; round < 2; round += 1) {
  try {
    answers.push(await calls[process.env.SUNDEW_FAILPOINT]());
  } catch ({ code, message, details }) {
    answers.push({ code, message, details });
  }
}
process.stdout.write(JSON.stringify(answers));
`;

test.each([
  ['engine.call', ['ab']],
  ['engine.task', true],
])('a panic in %s arrives as an error, and the process goes on', async (failpoint, answer) => {
  const child = Bun.spawn([process.execPath, '-e', script], {
    cwd: Bun.fileURLToPath(new URL('../../../', import.meta.url)),
    env: { ...process.env, SUNDEW_FAILPOINT: failpoint },
    stderr: 'inherit',
  });
  const [failed, next] = JSON.parse(await child.stdout.text());
  expect(failed).toEqual({
    code: 'engine_panic',
    message: expect.not.stringContaining('provoked'),
    details: { panic: 'the engine panicked: provoked by a test' },
  });
  expect(next).toEqual(answer);
});
