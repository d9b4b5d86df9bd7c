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

const merging = `
const { NativeIndex } = await import('./src/engine/native-index.ts');
const { FrameBuilder, rowKind } = await import('./src/lib/document-frame.ts');
const definition = { kind: 'full_text', name: 'text', incarnation: 1, partId: 1, memOnly: true };
const index = await NativeIndex.open('unused', definition, false);
for (let ordinal = 0; ordinal < 3; ordinal += 1) {
  const frame = new FrameBuilder();
  const row = frame.append(rowKind.put, 'k' + ordinal, new TextEncoder().encode('{"text":"soup"}'));
  frame.setOrdinal(row, ordinal);
  frame.setSequence(row, ordinal + 1);
  await index.apply(frame.finish());
  await index.commit(ordinal + 1);
}
for (let round = 0; round < 2_000 && index.stats().segmentCount > 1; round += 1) {
  await index.rest();
  await Bun.sleep(10);
}
const { segmentCount, docCount } = index.stats();
process.stdout.write(JSON.stringify({ segmentCount, docCount }));
`;

test('a merge of segments that panics is tried again when its index rests', async () => {
  const child = Bun.spawn([process.execPath, '-e', merging], {
    cwd: Bun.fileURLToPath(new URL('../../../', import.meta.url)),
    env: { ...process.env, SUNDEW_FAILPOINT: 'index.merge' },
    stderr: 'inherit',
  });
  expect(JSON.parse(await child.stdout.text())).toEqual({ segmentCount: 1, docCount: 3 });
});
