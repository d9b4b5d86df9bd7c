import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { SourceStamp } from './source-stamp.ts';

const root = Bun.fileURLToPath(new URL('../', import.meta.url));
const native = join(root, 'native');
const stamp = new SourceStamp(join(native, 'sundew.node.hash'), () => sourceFiles(native).sort());
const addonFile = join(native, `sundew.${process.platform}-${process.arch}.node`);
const libraryName = process.platform === 'darwin' ? 'libsundew_binding.dylib' : 'libsundew_binding.so';
/** The derive macros write the type definitions of the exports here while they compile. */
const definitionsDirectory = join(native, 'target', 'type-definitions');
const definitionsFile = join(definitionsDirectory, 'sundew-binding');
const declarationsFile = join(native, 'binding', 'index.d.ts');

export type BuildProfile = 'release' | 'dist';

/** Whether the addon was built from the sources as they are now. */
export function nativeIsCurrent(): boolean {
  return existsSync(addonFile) && stamp.isCurrent();
}

/** Builds the addon and puts it where `src/engine/native-addon.ts` looks. Throws an Error that says what to do. */
export async function buildNative(profile: BuildProfile = 'release'): Promise<void> {
  requireTools();
  const hash = stamp.hashOfContents();
  await runCargo(profile);
  // Renamed into place, so that a process that has the old file mapped keeps it whole.
  copyFileSync(join(native, 'target', profile, libraryName), `${addonFile}.tmp`);
  renameSync(`${addonFile}.tmp`, addonFile);
  stamp.write(hash);
}

/** Whether the declarations say that they were written from the exports as they are now. */
export function nativeTypesAreCurrent(): boolean {
  return existsSync(declarationsFile) && readFileSync(declarationsFile, 'utf8').startsWith(declarationsHeader());
}

/** Compiles the binding crate and writes `native/binding/index.d.ts` from its exports. */
export async function generateNativeTypes(): Promise<void> {
  requireTools();
  // The macros run only when the crate is compiled, so make it look changed.
  const now = new Date();
  utimesSync(join(native, 'binding', 'src', 'lib.rs'), now, now);
  await runCargo('release');
  const definitions = readFileSync(definitionsFile, 'utf8').trim().split('\n').map(parseDefinition);
  writeFileSync(declarationsFile, renderDeclarations(definitions));
}

function declarationsHeader(): string {
  const hash = new SourceStamp(declarationsFile, () => sourceFiles(join(native, 'binding')).sort()).hashOfContents();
  return `// Written by \`bun run generate\` from native/binding. Do not edit.\n// SHA-256 of its sources: ${hash}\n`;
}

interface Definition {
  kind: 'interface' | 'fn';
  name: string;
  js_doc: string;
  def: string;
}

function parseDefinition(line: string): Definition {
  const definition = JSON.parse(line) as Definition;
  if (definition.kind !== 'interface' && definition.kind !== 'fn') {
    throw new Error(`native/binding exports a ${definition.kind}; this script renders interfaces and functions`);
  }
  return definition;
}

function renderDeclarations(definitions: Definition[]): string {
  const byName = definitions.toSorted((a, b) => Number(a.name > b.name) - Number(a.name < b.name));
  const rendered = ['interface', 'fn'].flatMap((kind) =>
    byName.filter((definition) => definition.kind === kind).map(renderDefinition),
  );
  return `${declarationsHeader()}\n${rendered.join('\n\n')}\n`;
}

function renderDefinition({ kind, name, js_doc: comment, def }: Definition): string {
  if (kind === 'fn') return `${comment}export declare ${def};`;
  const members = def
    .split('\n')
    .map((line) => (line.startsWith('/*') || line.startsWith(' *') ? `  ${line}` : `  ${line};`));
  return `${comment}export interface ${name} {\n${members.join('\n')}\n}`;
}

function requireTools(): void {
  if (Bun.which('cargo') === null) {
    throw new Error(
      'cargo is missing: install Rust 1.95 or newer with rustup (https://rustup.rs), then run this again.',
    );
  }
  if (Bun.which('cc') === null) {
    throw new Error(
      'A C compiler is missing: install gcc or clang (on Debian: apt-get install gcc libc6-dev), then run this again.',
    );
  }
}

async function runCargo(profile: BuildProfile): Promise<void> {
  mkdirSync(definitionsDirectory, { recursive: true });
  const cargo = Bun.spawn(['cargo', 'build', '--profile', profile, '--package', 'sundew-binding', '--locked'], {
    cwd: native,
    env: { ...process.env, NAPI_TYPE_DEF_TMP_FOLDER: definitionsDirectory },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const code = await cargo.exited;
  if (code !== 0) throw new Error(`cargo build failed with exit code ${code}; its messages are above.`);
}

function sourceFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory())
      return ['target', 'tests', 'benches', 'examples', 'fuzz'].includes(entry.name) ? [] : sourceFiles(path);
    return entry.name.endsWith('.rs') || entry.name === 'Cargo.toml' || entry.name === 'Cargo.lock' ? [path] : [];
  });
}

async function main(args: readonly string[]): Promise<void> {
  const profileAt = args.indexOf('--profile');
  const profile = profileAt < 0 ? 'release' : args[profileAt + 1];
  if (profile !== 'release' && profile !== 'dist') throw new Error('--profile takes release or dist');
  if (args.includes('--if-needed') && nativeIsCurrent()) return;
  await buildNative(profile);
}

if (import.meta.main) {
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
