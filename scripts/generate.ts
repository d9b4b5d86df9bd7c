import { setUpOrExit } from './setup.ts';

// usage: bun scripts/generate.ts [--check]
// Writes what is generated and committed; with --check, says what differs instead. The declarations of the addon are made
// while it is compiled: only when its exports have changed, or to check them.

const root = Bun.fileURLToPath(new URL('../', import.meta.url));

async function textOf(path: string): Promise<string> {
  const file = Bun.file(root + path);
  return (await file.exists()) ? file.text() : '';
}

await setUpOrExit('developing');
const check = process.argv.includes('--check');
const { generatedDocuments } = await import('./generated-documents.ts');
const { generateNativeTypes, nativeTypesAreCurrent } = await import('./build-native.ts');
const declarations = 'native/binding/index.d.ts';
const declarationsBefore = await textOf(declarations);
if (check || !nativeTypesAreCurrent()) await generateNativeTypes();
const fresh = new Map([...generatedDocuments(), [declarations, await textOf(declarations)]]);
const differing: string[] = [];
for (const [path, text] of fresh) {
  const before = path === declarations ? declarationsBefore : await textOf(path);
  if (before === text) continue;
  differing.push(path);
  await Bun.write(root + path, check ? before : text);
}
if (check && differing.length > 0) {
  process.stderr.write(`${differing.join(', ')} is not what its sources say; run: bun run generate\n`);
  process.exitCode = 1;
} else {
  process.stderr.write(
    differing.length === 0 ? 'everything generated is current\n' : `written: ${differing.join(', ')}\n`,
  );
}
