import type { ServerListener } from '../http/listener/server-listener.ts';
import { readTls, type TlsFiles, type TlsMaterial } from '../http/listener/tls/tls-files.ts';
import { TlsReload } from '../http/listener/tls/tls-reload.ts';
import { systemClock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';

/** Loaded by a server that encrypts, and by no other: the port of the others opens without it. */
export function openTls(files: TlsFiles): TlsMaterial {
  return readTls(files);
}

/** Takes up renewed certificates for the life of the process. */
export function keepTls(files: TlsFiles, listener: ServerListener, logger: Logger): void {
  const reload = new TlsReload({
    files,
    listener,
    clock: systemClock,
    onReloaded: () => logger.info('a new certificate is in use', { cert: files.cert }),
    onLate(late, toMs) {
      const facts = { cert: files.cert, valid_to: new Date(toMs).toISOString() };
      if (late === 'expired') logger.error('the certificate has expired: clients refuse it', facts);
      else logger.warn('the certificate expires soon and was not renewed', facts);
    },
    onFailed: (reason) => logger.error('the certificate is not read again; the one before stays in use', { reason }),
  });
  void reload.run(new AbortController().signal);
}
