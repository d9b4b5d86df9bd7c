import { setUpOrExit } from './setup.ts';

// usage: bun scripts/check.ts
// Types, lint, layers, Rust format and lint, generated files. Every step runs, also after one that failed.

const root = Bun.fileURLToPath(new URL('../', import.meta.url));
const native = `${root}native`;

interface Step {
  readonly name: string;
  readonly command: string[];
  readonly cwd: string;
}

function cargoHas(component: string): boolean {
  return (
    Bun.spawnSync(['cargo', component, '--version'], { cwd: native, stdio: ['ignore', 'ignore', 'ignore'] })
      .exitCode === 0
  );
}

function rustSteps(): Step[] {
  const steps: Step[] = [];
  if (cargoHas('fmt')) steps.push({ name: 'Rust format', command: ['cargo', 'fmt', '--all', '--check'], cwd: native });
  else
    process.stderr.write('rustfmt is not installed: the Rust format is not checked (rustup component add rustfmt)\n');
  const clippy = [
    'cargo',
    'clippy',
    '--release',
    '--locked',
    '--workspace',
    '--lib',
    '--tests',
    '--examples',
    '--',
    '-D',
    'warnings',
  ];
  if (cargoHas('clippy')) steps.push({ name: 'Rust lint', command: clippy, cwd: native });
  else process.stderr.write('clippy is not installed: Rust is not linted (rustup component add clippy)\n');
  const deny = ['cargo', 'deny', '--locked', 'check', 'licenses', 'bans', 'sources'];
  if (cargoHas('deny')) steps.push({ name: 'Rust dependencies', command: deny, cwd: native });
  else
    process.stderr.write('cargo-deny is not installed: licences of Rust are not checked (cargo install cargo-deny)\n');
  return steps;
}

await setUpOrExit('developing');
const bun = process.execPath;
const binaries = `${root}node_modules/.bin`;
const steps: Step[] = [
  { name: 'types', command: [`${binaries}/tsc`, '-p', root], cwd: root },
  { name: 'lint', command: [`${binaries}/biome`, 'check', '--error-on-warnings'], cwd: root },
  { name: 'tidy', command: [bun, 'test', './test/tidy.test.ts'], cwd: root },
  ...rustSteps(),
  { name: 'generated files', command: [bun, 'scripts/generate.ts', '--check'], cwd: root },
];
const failed: string[] = [];
for (const { name, command, cwd } of steps) {
  process.stderr.write(`\n== ${name}\n`);
  const code = await Bun.spawn(command, { cwd, stdio: ['ignore', 2, 2] }).exited;
  if (code !== 0) failed.push(name);
}
process.stdout.write(
  failed.length === 0
    ? `\nchecks passed: ${steps.length} of ${steps.length}\n`
    : `\nchecks failed: ${failed.join(', ')}\n`,
);
process.exitCode = failed.length === 0 ? 0 : 1;
