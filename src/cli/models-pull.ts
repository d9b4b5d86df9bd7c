import { ConfigError } from '../config/load.ts';
import { modelCatalogue } from '../inference/download/model-catalogue.ts';
import { pullModel } from '../inference/download/pull-model.ts';
import { commandClock } from '../lib/clock.ts';
import { suggestion } from '../lib/did-you-mean.ts';
import { configOf } from './load-config.ts';
import { PullProgress, shownBytes } from './pull-progress.ts';
import { exitCodes, type VerbContext } from './verb.ts';

/** `sundew models pull [NAME]`: fetches a model of the catalogue; without a name, shows what there is. */
export async function pullModels(context: VerbContext, name: string): Promise<number> {
  const catalogue = modelCatalogue();
  if (name === '') {
    for (const each of catalogue) {
      const bytes = each.files.reduce((sum, file) => sum + (file.sources[0]?.bytes ?? 0), 0);
      context.print(`${each.name}  ${each.kind}  ${shownBytes(bytes)}  ${each.license}  ${each.description}\n`);
    }
    return exitCodes.done;
  }
  const entry = catalogue.find((each) => each.name === name);
  if (entry === undefined) {
    const names = catalogue.map((each) => each.name);
    throw new ConfigError(
      `no model named "${name}" is in the catalogue.${suggestion(name, names)} sundew models pull shows it; sundew models import takes files of your own`,
    );
  }
  const { modelsDir, hubUrl, allowDownloads } = configOf(context).config;
  const progress = new PullProgress(context.explain, process.stderr.isTTY === true);
  const model = await pullModel(entry, {
    modelsDirectory: modelsDir,
    hubUrl,
    allowDownloads,
    clock: commandClock,
    onEvent: (event) => progress.tell(event),
  }).finally(() => progress.end());
  context.explain(`${entry.kind}/${name} is installed in ${model.directory}\n`);
  return exitCodes.done;
}
