import { basename } from 'node:path';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { Clock } from '../../lib/clock.ts';
import type { ModelKind } from '../../protocol/models/model-kinds.ts';
import { isQuantizedName } from '../model-folder.ts';
import type { PullEntry } from './pull-model.ts';
import { isInnerPath } from './source-address.ts';
import { DownloadError } from './transfer/download-error.ts';
import { fetchDocument } from './transfer/fetch-document.ts';
import type { FileDigest } from './transfer/partial-file.ts';

const pagesMax = 20;
const hex = (length: number) => Type.String({ pattern: `^[0-9a-f]{${length}}$` });

/** The hub's answer about a revision and each of its files; members that are not needed are left out. */
const revisionSchema = Type.Object({ sha: hex(40) });
const treeSchema = Type.Array(
  Type.Object({
    type: Type.String(),
    path: Type.String(),
    size: Type.Integer({ minimum: 0 }),
    oid: hex(40),
    lfs: Type.Optional(Type.Object({ oid: hex(64), size: Type.Integer({ minimum: 0 }) })),
  }),
);
type HubFile = Static<typeof treeSchema>[number];

/** The files beside the weights of an ONNX model that are read with them. */
const companions = [
  'config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'sentence_bert_config.json',
  'config_sentence_transformers.json',
  '1_Pooling/config.json',
  'preprocessor_config.json',
];

const repositoryAddress =
  /^hub:([A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._-]*)(?:@([A-Za-z0-9][A-Za-z0-9._-]*))?(?:#(.+))?$/;

export function isHubRepository(text: string): boolean {
  return text.startsWith('hub:');
}

/**
 * The files to pull for `hub:OWNER/NAME[@REVISION][#PATH]`: the one GGUF file, or the ONNX weights (eight bits before others)
 * with what they need. Revision and digests are those that the hub tells now. Throws `DownloadError`.
 */
export async function hubEntry(
  address: string,
  { hubUrl, kind, name, clock }: { hubUrl: string; kind: ModelKind; name: string | undefined; clock: Clock },
): Promise<PullEntry> {
  const [, repository, revision = 'main', path] = repositoryAddress.exec(address) ?? [];
  if (repository === undefined) {
    throw new DownloadError(`"${address}" is not an address: hub:OWNER/NAME, with @REVISION and #PATH where wanted`);
  }
  const api = `${hubUrl.replace(/\/+$/, '')}/api/models/${repository}`;
  const { sha } = (await askHub(`${api}/revision/${revision}`, revisionSchema, clock)).value;
  const files = await filesOf(`${api}/tree/${sha}?recursive=true`, clock);
  const weights = chooseWeights(files, path);
  const wanted = weights.endsWith('.gguf') ? [weights] : [weights, `${weights}_data`, `${weights}.data`, ...companions];
  return {
    name: name ?? repository,
    kind,
    manifest: {},
    files: wanted.flatMap((each) => {
      const file = files.find((candidate) => candidate.path === each);
      if (file === undefined) return [];
      const from = `hub:${repository}@${sha}#${each}`;
      // Weights are looked for in the directory itself.
      const path = each.endsWith('.gguf') ? basename(each) : each;
      return [{ path, sources: [{ from, bytes: file.lfs?.size ?? file.size, digest: digestOf(file) }] }];
    }),
  };
}

/** Large files are known by their SHA-256, the others by what git calls them. */
function digestOf({ oid, lfs }: HubFile): FileDigest {
  return lfs === undefined ? { git: oid } : { sha256: lfs.oid };
}

/** The path of the file with the weights. Throws where several could be meant. */
export function chooseWeights(files: readonly { readonly path: string }[], path: string | undefined): string {
  const weights = files.map((file) => file.path).filter((each) => /\.(?:gguf|onnx)$/.test(each) && isInnerPath(each));
  if (path !== undefined) {
    if (weights.includes(path)) return path;
    throw new DownloadError(`there is no file of weights "${path}"; there are ${listed(weights)}`);
  }
  const gguf = weights.filter((each) => each.endsWith('.gguf'));
  const candidates =
    gguf.length > 0 ? gguf : weights.filter((each) => /(?:^|\/)model(?:[-_.](?:i8|int8|quantized))?\.onnx$/.test(each));
  const quantized = candidates.filter((each) => isQuantizedName(each.replace(/\.\w+$/, '')));
  const [only, ...others] = quantized.length === 1 ? quantized : candidates;
  if (only !== undefined && others.length === 0) return only;
  throw new DownloadError(`name the file with #PATH; there are ${listed(weights)}`);
}

function listed(paths: readonly string[]): string {
  return paths.length === 0 ? 'none, GGUF or ONNX' : paths.slice(0, 40).join(', ');
}

async function filesOf(first: string, clock: Clock): Promise<HubFile[]> {
  const files: HubFile[] = [];
  let url: string | undefined = first;
  for (let page = 0; url !== undefined && page < pagesMax; page += 1) {
    const answer: HubAnswer<HubFile[]> = await askHub(url, treeSchema, clock);
    files.push(...answer.value.filter(({ type }) => type === 'file'));
    url = answer.next;
  }
  return files;
}

interface HubAnswer<T> {
  readonly value: T;
  /** Address of the next page. */
  readonly next: string | undefined;
}

async function askHub<Schema extends typeof revisionSchema | typeof treeSchema>(
  url: string,
  schema: Schema,
  clock: Clock,
): Promise<HubAnswer<Static<Schema>>> {
  const options = { accept: 'application/json', missing: 'there is no such model', clock };
  const { text, headers } = await fetchDocument(url, options);
  const value = parsed(text);
  if (!Value.Check(schema, value)) throw new DownloadError(`${url} answered something else than a hub does`);
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  return { value: value as Static<Schema>, next: next === undefined ? undefined : new URL(next, url).href };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
