import { systemClock } from '../../src/lib/clock.ts';
import { pullModel } from '../../src/models/download/pull-model.ts';

// usage: bun model-pull-child.ts ENTRY-JSON MODELS-DIRECTORY HUB-URL
const [entry = '', modelsDirectory = '', hubUrl = ''] = process.argv.slice(2);
await pullModel(JSON.parse(entry), {
  modelsDirectory,
  hubUrl,
  packageIndex: 'none',
  allowDownloads: true,
  clock: systemClock,
  onEvent: (event) => process.stdout.write(`${JSON.stringify(event)}\n`),
});
