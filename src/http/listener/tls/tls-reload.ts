import { type Clock, pause } from '../../../lib/clock.ts';
import type { Service } from '../../../lib/concurrency/supervise.ts';
import type { ServerListener } from '../server-listener.ts';
import { readTls, type TlsFiles, type TlsMaterial, validityOf } from './tls-files.ts';

const lookMs = 5_000;
/** A certificate with less than this share of its time left should have been renewed. */
const lateShare = 1 / 5;

interface Deps {
  readonly files: TlsFiles;
  readonly listener: Pick<ServerListener, 'tls' | 'useTls'>;
  readonly clock: Clock;
  readonly onReloaded: () => void;
  /** The files cannot be used; what was read before stays in use. Told once for each reason. */
  readonly onFailed: (reason: string) => void;
  /** The certificate in use should have been renewed, or is not valid any more. Told once of each. */
  readonly onLate: (late: 'expiring' | 'expired', toMs: number) => void;
}

/** Takes up renewed certificates: the files are looked at every few seconds, whichever way they were replaced. */
export class TlsReload implements Service {
  readonly name = 'tls-reload';
  readonly #deps: Deps;
  #lastFailure = '';
  #lastLate = '';

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await pause(this.#deps.clock, lookMs, signal);
      if (signal.aborted) return;
      this.#look();
      this.#tellLate();
    }
  }

  #tellLate(): void {
    const { listener, clock, onLate } = this.#deps;
    if (listener.tls === undefined) return;
    const { cert } = listener.tls;
    const { fromMs, toMs } = validityOf(cert);
    const leftMs = toMs - clock.nowMs();
    const late = leftMs <= 0 ? 'expired' : leftMs < (toMs - fromMs) * lateShare ? 'expiring' : undefined;
    if (late === undefined || this.#lastLate === late + cert) return;
    this.#lastLate = late + cert;
    onLate(late, toMs);
  }

  #look(): void {
    const { files, listener, onReloaded, onFailed } = this.#deps;
    try {
      const found = readTls(files);
      this.#lastFailure = '';
      if (isSame(found, listener.tls)) return;
      listener.useTls(found);
      onReloaded();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.#lastFailure) onFailed(reason);
      this.#lastFailure = reason;
    }
  }
}

function isSame(found: TlsMaterial, used: TlsMaterial | undefined): boolean {
  return found.cert === used?.cert && found.key === used.key && found.ca === used.ca;
}
