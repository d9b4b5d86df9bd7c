import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { PackageAddress } from './source-address.ts';
import { DownloadError } from './transfer/download-error.ts';
import { type FetchedDocument, fetchDocument } from './transfer/fetch-document.ts';
import type { FetchFileOptions } from './transfer/fetch-file.ts';

/** A wheel as an index lists it. */
interface IndexedWheel {
  readonly url: string;
  readonly sha256: string;
  readonly bytes: number;
}

interface ListedFile {
  readonly filename: string;
  readonly url: string;
  readonly sha256: string | undefined;
  readonly size: number | undefined;
}

/** The JSON form of the simple repository interface (PEP 691, sizes by PEP 700); there is more, which is not needed. */
const projectSchema = Type.Object({
  files: Type.Array(
    Type.Object({
      filename: Type.String(),
      url: Type.String(),
      hashes: Type.Record(Type.String(), Type.String()),
      size: Type.Optional(Type.Integer({ minimum: 0 })),
    }),
  ),
});

const accept = 'application/vnd.pypi.simple.v1+json, text/html;q=0.5';
const htmlTypes = ['text/html', 'application/vnd.pypi.simple.v1+html'];

/**
 * Finds the wheel of a package in an index (PEP 503, PEP 691), a wheel for every platform before others. Throws
 * `DownloadError`.
 */
export async function findWheel(
  { name, version }: PackageAddress,
  indexUrl: string,
  options: Pick<FetchFileOptions, 'clock' | 'signal'>,
): Promise<IndexedWheel> {
  const page = `${indexUrl.replace(/\/+$/, '')}/${normalized(name)}/`;
  const document = await fetchDocument(page, { ...options, accept, missing: `there is no package ${name}` });
  const files = htmlTypes.includes(document.mediaType) ? filesOfHtml(document) : filesOfJson(document);
  const wheels = files.filter(({ filename }) => isWheelOf(filename, name, version));
  const wheel = wheels.find(({ filename }) => filename.endsWith('-none-any.whl')) ?? wheels[0];
  if (wheel === undefined) throw new DownloadError(`${page} lists no wheel of ${name} ${version}`);
  const url = new URL(wheel.url, document.url);
  if (!/^https?:$/.test(url.protocol)) throw new DownloadError(`${page} lists an address of ${url.protocol}`);
  if (wheel.sha256 === undefined || !/^[0-9a-f]{64}$/.test(wheel.sha256)) {
    throw new DownloadError(`${page} lists ${wheel.filename} without its SHA-256`);
  }
  url.hash = '';
  return { url: url.href, sha256: wheel.sha256, bytes: wheel.size ?? (await sizeAt(url.href, options.signal)) };
}

/** As PEP 503 writes names. */
function normalized(name: string): string {
  return name.toLowerCase().replaceAll(/[-_.]+/g, '-');
}

/** `NAME-VERSION(-BUILD)?-PYTHON-ABI-PLATFORM.whl`, where a name has `_` for `-`. */
function isWheelOf(filename: string, name: string, version: string): boolean {
  const [project, release, ...tags] = filename.replace(/\.whl$/, '').split('-');
  const fits = filename.endsWith('.whl') && tags.length >= 3 && release === version;
  return fits && normalized(project ?? '') === normalized(name);
}

function filesOfJson({ text, url }: FetchedDocument): ListedFile[] {
  const value = parsed(text);
  if (!Value.Check(projectSchema, value)) throw new DownloadError(`${url} answered something else than an index does`);
  const { files }: Static<typeof projectSchema> = value;
  return files.map(({ filename, url: at, hashes, size }) => ({ filename, url: at, sha256: hashes.sha256, size }));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Every `<a href="ADDRESS#sha256=...">FILENAME</a>`. */
function filesOfHtml({ text }: FetchedDocument): ListedFile[] {
  return [...text.matchAll(/<a\s[^>]*?href\s*=\s*["']([^"']+)["'][^>]*>\s*([^<\s]+)\s*<\/a>/gi)].map(
    ([, href = '', filename = '']) => {
      const url = href.replaceAll('&amp;', '&');
      return { filename, url, sha256: /#(?:.*&)?sha256=([0-9a-f]{64})/.exec(url)?.[1], size: undefined };
    },
  );
}

/** Older indexes tell no sizes. */
async function sizeAt(url: string, signal: AbortSignal | undefined): Promise<number> {
  const { status, headers } = await fetch(url, { method: 'HEAD', ...(signal && { signal }) });
  const length = Number(headers.get('content-length') ?? Number.NaN);
  if (status === 200 && Number.isSafeInteger(length) && length > 0) return length;
  throw new DownloadError(`${url} does not tell its size (HTTP ${status})`);
}
