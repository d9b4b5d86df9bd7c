import type { Inference } from '../../../inference/inference.ts';
import { modelCatalogue } from '../../../models/download/model-catalogue.ts';
import type { DownloadProgress } from '../../../models/download/model-downloads.ts';
import type { ModelKind } from '../../../protocol/models/model-kinds.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import { LateStream } from '../../listener/streams/late-stream.ts';

/**
 * Fetches a model of the catalogue where it is not installed, and tells how far it is in lines of JSON unless the answer is
 * to be whole. All files of a model are counted together. A client that leaves does not end the download.
 */
export async function pull(
  { models, registry, clock }: Inference,
  name: string,
  isStreamed: boolean,
  context: ConstructorParameters<typeof LateStream>[0],
): Promise<object> {
  registry.rescan();
  const kind =
    registry.models.find((model) => model.name === name)?.kind ??
    modelCatalogue().find((entry) => entry.name === name)?.kind;
  if (kind === undefined) {
    const message = `no model named "${name}" is in the catalogue; sundew models pull lists it, and takes hub addresses`;
    throw new ServiceError('model_not_found', message);
  }
  if (!isStreamed) {
    await models.obtain(kind, name, { signal: context.signal });
    return { status: 'success' };
  }
  const failure = ({ code, message }: ServiceError) => JSON.stringify({ error: `${code}: ${message}` });
  const stream = new LateStream(context, { clock, framing: 'lines', failure });
  return await stream.run(async () => {
    const send = (line: object) => stream.send(JSON.stringify(line));
    send({ status: 'pulling manifest' });
    await models.obtain(kind, name, { signal: stream.signal, onProgress: progressLines(kind, name, send) });
    send({ status: 'success' });
  });
}

/** A line for each percent at most, as many as a client can show. */
function progressLines(kind: ModelKind, name: string, send: (line: object) => void) {
  let told = -1;
  return ({ received, total }: DownloadProgress) => {
    const percent = Math.floor((100 * received) / total);
    if (percent <= told) return;
    told = percent;
    send({ status: `pulling ${name}`, digest: `${kind}/${name}`, total, completed: received });
  };
}
