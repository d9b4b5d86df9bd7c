import type { Credentials } from '../../access/secrets/credentials.ts';
import type { ConnectionOptions } from '../../config/named-sections/connection-options.ts';
import { decodeBase64, parseDataUri } from '../../inference/media/data-uri.ts';
import type { FetchedMedia, MediaFetcher } from '../../inference/media/fetch-media.ts';
import { MediaBudget, type MediaOptions } from '../../inference/media/media-budget.ts';
import { mediaTypeOf } from '../../inference/media/media-type.ts';
import { soundSamples } from '../../inference/media/sound-samples.ts';
import type { ModelPool } from '../../model-host/model-pool.ts';
import type { HostSettings } from '../../model-host/model-spec.ts';
import type { Priority } from '../../model-host/priority.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { MediaDirective, RenderedPart } from '../template/render-template.ts';
import { scrubHtml } from '../template/template-libraries.ts';
import { readAllowedFile } from './file-source.ts';
import { mediaCapability, signedObjectAddress } from './object-source.ts';

interface TemplateMediaDeps {
  readonly bounds: MediaOptions;
  /** Checks hosts and addresses. */
  readonly fetcher: Pick<MediaFetcher, 'fetch'>;
  /** The same for object stores that connections name, which may lie in the network of the operator. */
  readonly trustedFetcher: Pick<MediaFetcher, 'fetch'>;
  readonly pool: Pick<ModelPool, 'run'>;
  readonly settings: HostSettings;
  readonly credentials: Pick<Credentials, 'resolve'>;
  readonly connections: () => ReadonlyMap<string, ConnectionOptions>;
  /** Directories that `file://` may name. */
  readonly paths: () => readonly string[];
}

/** An image, no larger than models are shown, or a sound. */
export interface TemplateMedium {
  readonly mediaType: string;
  readonly base64: string;
}

/** The content of a rendered template: texts, images and sounds in their order. */
export type TemplateContent = string | TemplateMedium;

interface Call {
  readonly signal: AbortSignal;
  readonly priority?: Priority;
}

/** Characters of the text of one document; what comes behind them is left out. */
const textCharsMax = 1024 * 1024;
const textTypes = /^(?:text\/(?!html)|application\/(?:json|x-ndjson|xml|yaml)\b)/i;

/**
 * Puts what the media of a template are in their places: images made small enough, the text of PDF, HTML and plain texts,
 * or a picture of the first page of a PDF. All media of one template share one budget, whatever scheme they come by.
 */
export class TemplateMedia {
  readonly #deps: TemplateMediaDeps;

  constructor(deps: TemplateMediaDeps) {
    this.#deps = deps;
  }

  /** For several templates that are to share one. */
  newBudget(): MediaBudget {
    return new MediaBudget(this.#deps.bounds);
  }

  /** Throws `invalid_media`, `media_too_large`, `image_not_found`, `media_fetch_failed`: faults of the document. */
  async resolve(
    parts: readonly RenderedPart[],
    call: Call,
    budget: MediaBudget = this.newBudget(),
  ): Promise<TemplateContent[]> {
    const content: TemplateContent[] = [];
    let count = 0;
    for (const part of parts) {
      if (typeof part === 'string') {
        content.push(part);
        continue;
      }
      count += 1;
      content.push(await this.#contentOf(part, `media ${count} of the template`, budget, call));
    }
    return content;
  }

  async #contentOf(
    directive: MediaDirective,
    where: string,
    budget: MediaBudget,
    call: Call,
  ): Promise<TemplateContent> {
    const { bytes, mediaType } = await this.#load(directive.url, where, budget, call.signal);
    const declared = (mediaType ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
    if (startsWith(bytes, '%PDF-')) return await this.#pdf(directive, bytes, where, budget, call);
    if (isHtml(declared, bytes)) return await this.#html(bytes, where, call);
    if (textTypes.test(declared)) return textIn(bytes, where).slice(0, textCharsMax);
    return await this.#imageOrSound(bytes, declared, where, budget, call);
  }

  async #load(url: string, where: string, budget: MediaBudget, signal: AbortSignal): Promise<FetchedMedia> {
    if (/^data:/i.test(url)) {
      const { mediaType, base64 } = parseDataUri(url, where);
      budget.takeBytes(base64.length, where);
      return { bytes: decodeBase64(base64, where), mediaType };
    }
    // Nothing is asked for where nothing more may come.
    if (budget.bytesLeft <= 0) budget.takeBytes(1, where);
    const { fetcher, trustedFetcher, connections, credentials } = this.#deps;
    let fetched: FetchedMedia;
    if (/^file:/i.test(url)) {
      fetched = { bytes: readAllowedFile(url, this.#directories(), budget.bytesLeft, where), mediaType: undefined };
    } else if (/^s3:/i.test(url)) {
      const address = signedObjectAddress(url, connections(), credentials, where);
      fetched = await trustedFetcher.fetch(address, budget.bytesLeft, where, signal);
    } else {
      fetched = await fetcher.fetch(url, budget.bytesLeft, where, signal);
    }
    budget.takeBytes(fetched.bytes.byteLength, where);
    return fetched;
  }

  #directories(): string[] {
    const connected = [...this.#deps.connections().values()].flatMap(({ protocol, root, capabilities }) =>
      protocol === 'filesystem' && root !== undefined && capabilities?.includes(mediaCapability) ? [root] : [],
    );
    return [...this.#deps.paths(), ...connected];
  }

  async #pdf(
    { as }: MediaDirective,
    file: Uint8Array,
    name: string,
    budget: MediaBudget,
    call: Call,
  ): Promise<TemplateContent> {
    const { pool, settings, bounds } = this.#deps;
    const spec = { backend: 'document', settings } as const;
    if (as !== 'image') return (await pool.run(spec, 'readPdf', { file, name, charsMax: textCharsMax }, call)).text;
    const { edgeMax } = bounds;
    // Before it is drawn: at most a square of the longest edge.
    budget.takePixels(edgeMax, edgeMax, name);
    const { image } = await pool.run(spec, 'showPdf', { file, name, edgeMax }, call);
    return { mediaType: 'image/png', base64: Buffer.from(image).toString('base64') };
  }

  async #html(bytes: Uint8Array, name: string, call: Call): Promise<string> {
    const { pool, settings } = this.#deps;
    const html = textIn(bytes, name).slice(0, 4 * textCharsMax);
    const read = await pool.run({ backend: 'document', settings }, 'readHtml', { html, name }, call);
    const text = scrubHtml(read.html.slice(0, 2 * textCharsMax));
    return (read.title === '' || text.startsWith(read.title) ? text : `${read.title}\n${text}`).slice(0, textCharsMax);
  }

  async #imageOrSound(
    bytes: Uint8Array,
    declared: string,
    name: string,
    budget: MediaBudget,
    call: Call,
  ): Promise<TemplateContent> {
    const mediaType = mediaTypeOf(bytes, declared, name);
    if (!mediaType.startsWith('image/')) {
      const samples = soundSamples(bytes, mediaType, name);
      if (samples !== undefined) budget.takeSound(samples, name);
      return { mediaType, base64: Buffer.from(bytes).toString('base64') };
    }
    const { pool, settings, bounds } = this.#deps;
    const spec = { backend: 'image', settings } as const;
    const { sizes } = await pool.run(spec, 'inspectImages', { images: [bytes], names: [name] }, call);
    const [size] = sizes;
    if (size === undefined || 'refused' in size) throw new ServiceError('invalid_media', size?.refused ?? name);
    budget.takePixels(size.width, size.height, name);
    const { edgeMax } = bounds;
    if (Math.max(size.width, size.height) <= edgeMax) {
      return { mediaType, base64: Buffer.from(bytes).toString('base64') };
    }
    const encode = mediaType === 'image/png' ? 'png' : 'jpeg';
    const input = { image: bytes, name, fit: 'inside', width: edgeMax, height: edgeMax, encode } as const;
    const { data } = await pool.run(spec, 'prepareImage', input, call);
    if (!(data instanceof Uint8Array)) throw new TypeError('an encoded image is bytes');
    return { mediaType: `image/${encode}`, base64: Buffer.from(data).toString('base64') };
  }
}

function isHtml(declared: string, bytes: Uint8Array): boolean {
  if (declared === 'text/html' || declared === 'application/xhtml+xml') return true;
  const head = Buffer.from(bytes.subarray(0, 256)).toString('latin1');
  return declared === '' && /^\s*(?:<!doctype html|<html)/i.test(head);
}

function startsWith(bytes: Uint8Array, mark: string): boolean {
  return Buffer.from(bytes.subarray(0, mark.length)).toString('latin1') === mark;
}

function textIn(bytes: Uint8Array, where: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ServiceError('invalid_media', `${where} is not text in UTF-8`);
  }
}
