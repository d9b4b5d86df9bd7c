import { ConfigError } from '../config/config-error.ts';
import { commandClock } from '../lib/clock.ts';
import { suggestion } from '../lib/text/did-you-mean.ts';
import { hubEntry, isHubRepository } from '../models/download/hub-repository.ts';
import { modelCatalogue, pullEntryOf } from '../models/download/model-catalogue.ts';
import { isPulled, type PullEntry, pullModel, requireDownloads } from '../models/download/pull-model.ts';
import { DownloadStopped } from '../models/download/transfer/download-error.ts';
import type { CatalogueEntry } from '../protocol/models/catalogue-entry.ts';
import { isModelKind, modelKinds } from '../protocol/models/model-kinds.ts';
import { configOf } from './load-config.ts';
import { PullProgress, shownBytes } from './pull-progress.ts';
import { stopBySignal } from './stop-by-signal.ts';
import { exitCodes, type VerbContext } from './verb.ts';

/**
 * `sundew models pull [NAME]`: fetches a model of the catalogue, or of the hub
 * by its address; without a name, shows the catalogue.
 */
export async function pullModels(context: VerbContext, name: string): Promise<number> {
  const catalogue = modelCatalogue();
  if (name === '') {
    const rows = catalogue.map(({ name: title, kind, files, license, description }) => {
      const bytes = files.reduce((sum, file) => sum + (file.sources[0]?.bytes ?? 0), 0);
      return [title, kind, shownBytes(bytes), license, description];
    });
    const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
    for (const row of rows) context.print(`${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}\n`);
    return exitCodes.done;
  }
  const { modelsDir, hubUrl, packageIndex, allowDownloads } = configOf(context).config;
  const isOfHub = isHubRepository(name);
  if (isOfHub) requireDownloads(allowDownloads);
  const entry = isOfHub ? await entryOfHub(context, name, hubUrl) : entryOf(catalogue, name);
  if (isPulled(entry, modelsDir)) {
    context.explain(`${entry.kind}/${entry.name} is installed already in ${modelsDir}; nothing was fetched\n`);
    return exitCodes.done;
  }
  // Whatever the pull has started ends with it.
  using stopping = stopBySignal(() => new DownloadStopped('the download was cancelled; what has arrived is kept'));
  const progress = new PullProgress(context.explain, process.stderr.isTTY === true);
  const model = await pullModel(entry, {
    modelsDirectory: modelsDir,
    hubUrl,
    packageIndex,
    allowDownloads,
    clock: commandClock,
    signal: stopping.signal,
    onEvent: (event) => progress.tell(event),
  }).finally(() => progress.end());
  context.explain(`${entry.kind}/${entry.name} is installed in ${model.directory}\n`);
  return exitCodes.done;
}

function entryOf(catalogue: readonly CatalogueEntry[], name: string): PullEntry {
  const entry = catalogue.find((each) => each.name === name);
  if (entry !== undefined) return pullEntryOf(entry);
  const guess = suggestion(
    name,
    catalogue.map((each) => each.name),
  );
  throw new ConfigError(
    `no model named "${name}" is in the catalogue.${guess} sundew models pull shows it; hub:OWNER/NAME takes one from the hub, sundew models import takes files of your own`,
  );
}

async function entryOfHub({ args }: VerbContext, address: string, hubUrl: string): Promise<PullEntry> {
  const kind = args.flags.get('--kind');
  if (!isModelKind(kind)) throw new ConfigError(`--kind is missing: one of ${modelKinds.join(', ')}`);
  if (hubUrl === 'none') throw new ConfigError('no hub is configured (inference.hub_url)');
  return await hubEntry(address, { hubUrl, kind, name: args.flags.get('--name'), clock: commandClock });
}
