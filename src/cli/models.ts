import { basename, resolve } from 'node:path';
import { ConfigError } from '../config/config-error.ts';
import { formatSize } from '../config/value-kind.ts';
import { must } from '../lib/assert.ts';
import { KiB, MiB } from '../lib/units.ts';
import { digestFaults } from '../models/file-digests.ts';
import { importModel } from '../models/install-model.ts';
import type { InstalledModel } from '../models/installed-model.ts';
import { modelDirectory } from '../models/model-location.ts';
import { ModelRegistry } from '../models/model-registry.ts';
import { removeModel } from '../models/remove-model.ts';
import { isModelKind, type ModelKind, modelKinds } from '../protocol/models/model-kinds.ts';
import { verbOfActions } from './actions.ts';
import { configFlags, configOf } from './load-config.ts';
import { pullModels } from './models-pull.ts';
import { exitCodes, type VerbContext } from './verb.ts';

type Action = (context: VerbContext, subject: string) => number | Promise<number>;

/** `sundew models list | show | pull | import | rm`: the models directory of this machine; no server needs to run. */
export const models = verbOfActions<Action>(
  {
    name: 'models',
    summary: 'List, show, pull, import and remove models on disk.',
    usually: 'list',
    actions: [
      { name: 'list', takes: [], help: 'Print the models that are installed; also without an action.', run: list },
      { name: 'show', takes: ['NAME'], help: 'Print what is known of a model.', run: show },
      {
        name: 'pull',
        takes: ['[NAME | hub:OWNER/NAME[@REVISION][#PATH]]'],
        help: 'Fetch a model; without a name, print the catalogue.',
        run: pullModels,
      },
      { name: 'import', takes: ['FOLDER'], help: 'Install a folder, an archive or a file.', run: importFolder },
      { name: 'rm', takes: ['NAME'], help: 'Remove a model.', run: remove },
    ],
    flags: [
      {
        flag: '--kind',
        value: 'KIND',
        help: `One of ${modelKinds.join(', ')}; needed by import, and by pull of an address.`,
      },
      {
        flag: '--name',
        value: 'NAME',
        of: ['pull', 'import'],
        help: 'Name of a model that is imported, or pulled by its address; without it, the name that it has there.',
      },
      { flag: '--verify', of: ['show'], help: 'Compare every file with its digest in the manifest.' },
      { flag: '--yes', of: ['rm'], help: 'Do it.' },
      { flag: '--json', of: ['list'], help: 'JSON instead of a table.' },
      ...configFlags(['modelsDir', 'predictorsDir', 'allowDownloads', 'hubUrl', 'packageIndex']),
    ],
  },
  (run, context, [subject = '']) => run(context, subject),
);

function registryOf(context: VerbContext): ModelRegistry {
  const { modelsDir, predictorsDir } = configOf(context).config;
  return new ModelRegistry(modelsDir, predictorsDir);
}

function kindOf({ args }: VerbContext): ModelKind | undefined {
  const kind = args.flags.get('--kind');
  if (kind === undefined || isModelKind(kind)) return kind;
  throw new ConfigError(`--kind must be one of ${modelKinds.join(', ')}, not "${kind}"`);
}

function list(context: VerbContext): number {
  const registry = registryOf(context);
  const kind = kindOf(context);
  const found = registry.models.filter((model) => kind === undefined || model.kind === kind);
  const refused = registry.refused.filter((each) => kind === undefined || each.kind === kind);
  if (context.args.flags.has('--json')) {
    context.print(`${JSON.stringify({ models: found.map(summaryOf), refused }, null, 2)}\n`);
    return exitCodes.done;
  }
  const rows = found.map((model) => [model.kind, model.name, model.variant, shownSize(model.bytes)]);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  for (const row of rows) context.print(`${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}\n`);
  if (rows.length === 0) context.explain(`no models in ${configOf(context).config.modelsDir}\n`);
  for (const each of refused) context.explain(`${each.kind}/${each.name} cannot be served: ${each.reason}\n`);
  return exitCodes.done;
}

function show(context: VerbContext, name: string): number {
  const model = oneOf(context, name);
  const faults = context.args.flags.has('--verify') ? digestFaults(model.directory, model.manifest.digests ?? {}) : [];
  context.print(`${JSON.stringify({ ...summaryOf(model), manifest: model.manifest }, null, 2)}\n`);
  for (const fault of faults) context.explain(`${fault}\n`);
  return faults.length === 0 ? exitCodes.done : exitCodes.failed;
}

async function importFolder(context: VerbContext, source: string): Promise<number> {
  const kind = kindOf(context);
  if (kind === undefined) throw new ConfigError(`--kind is missing: one of ${modelKinds.join(', ')}`);
  const name =
    context.args.flags.get('--name') ?? basename(resolve(source)).replace(/\.(?:gguf|onnx|zip|tar|tar\.gz|tgz)$/, '');
  const model = await importModel(source, { modelsDirectory: configOf(context).config.modelsDir, kind, name });
  context.explain(
    `${kind}/${name} is installed in ${model.directory}; a running server finds it at the next request that names it\n`,
  );
  return exitCodes.done;
}

function remove(context: VerbContext, name: string): number {
  const registry = registryOf(context);
  const wanted = kindOf(context);
  const all = [...registry.models, ...registry.refused].flatMap((each) =>
    isModelKind(each.kind) && each.name === name && (wanted ?? each.kind) === each.kind ? [each.kind] : [],
  );
  const place = { modelsDirectory: configOf(context).config.modelsDir, kind: onlyOne(all, name), name };
  if (!context.args.flags.has('--yes')) {
    context.explain(`${modelDirectory(place)} would be deleted; repeat the command with --yes\n`);
    return exitCodes.usage;
  }
  removeModel(place);
  context.explain(`${modelDirectory(place)} is deleted\n`);
  return exitCodes.done;
}

function oneOf(context: VerbContext, name: string): InstalledModel {
  const registry = registryOf(context);
  const wanted = kindOf(context);
  const named = registry.models.filter((model) => model.name === name && (wanted ?? model.kind) === model.kind);
  const refused = registry.refused.find((each) => each.name === name);
  if (named.length === 0 && refused !== undefined) throw new Error(`${name} cannot be served: ${refused.reason}`);
  onlyOne(
    named.map((model) => model.kind),
    name,
  );
  return must(named[0], 'one model has the name');
}

function onlyOne(kinds: readonly ModelKind[], name: string): ModelKind {
  const [kind, ...others] = kinds;
  if (kind === undefined) throw new Error(`no model named "${name}" is installed; sundew models list shows them`);
  if (others.length > 0)
    throw new ConfigError(`"${name}" is among the ${kinds.join(' and the ')}; say which with --kind`);
  return kind;
}

function summaryOf({ kind, name, backend, variant, weights, bytes, parameters, directory }: InstalledModel) {
  return { kind, name, backend, variant, weights, bytes, parameters, directory };
}

function shownSize(bytes: number): string {
  return bytes < MiB ? `${Math.ceil(bytes / KiB)}KiB` : formatSize(Math.round(bytes / MiB) * MiB);
}
