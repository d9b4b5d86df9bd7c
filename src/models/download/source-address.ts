import { DownloadError } from './transfer/download-error.ts';

/** A file of a repository of a model hub. */
interface HubAddress {
  readonly type: 'hub';
  /** `OWNER/NAME` */
  readonly repository: string;
  readonly revision: string;
  readonly path: string;
}

/** A file in the wheel of a Python package. */
export interface PackageAddress {
  readonly type: 'pypi';
  readonly name: string;
  readonly version: string;
  readonly path: string;
}

type SourceAddress = HubAddress | PackageAddress;

const word = '[A-Za-z0-9][A-Za-z0-9._-]*';
const address = new RegExp(`^(?:(hub):(${word}/${word})|(pypi):(${word}))@(${word})#(.+)$`);

/** Reads `hub:OWNER/NAME@REVISION#PATH` and `pypi:NAME@VERSION#PATH`. Throws `DownloadError`. */
export function parseSource(text: string): SourceAddress {
  const found = address.exec(text);
  const [, , repository, , name, revision = '', path = ''] = found ?? [];
  if (found === null || !isInnerPath(path)) {
    throw new DownloadError(`"${text}" is not a source: hub:OWNER/NAME@REVISION#PATH or pypi:NAME@VERSION#PATH`);
  }
  return repository === undefined
    ? { type: 'pypi', name: name ?? '', version: revision, path }
    : { type: 'hub', repository, revision, path };
}

/** A relative path that stays where it begins, with nothing hidden on the way. */
export function isInnerPath(path: string): boolean {
  return (
    path.length <= 512 &&
    !/[\\\p{Cc}:]/u.test(path) &&
    path.split('/').every((segment) => segment !== '' && !segment.startsWith('.'))
  );
}

/** Where a hub serves the file. */
export function hubFileUrl(hubUrl: string, { repository, revision, path }: HubAddress): string {
  const inner = path.split('/').map(encodeURIComponent).join('/');
  return `${hubUrl.replace(/\/+$/, '')}/${repository}/resolve/${revision}/${inner}`;
}
