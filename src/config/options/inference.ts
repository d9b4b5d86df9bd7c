import { dayMs, hourMs, MiB, secondMs } from '../../lib/units.ts';
import { limits } from '../limits.ts';
import { hostPatterns } from '../named-sections/credential-kinds.ts';
import { option, optional } from '../option.ts';
import { duration, flag, integer, list, size, text, webAddress } from '../value-kind.ts';

/** Models, downloads, media, and the hosts of providers. */
export const inferenceOptions = {
  modelsDir: option({
    key: 'inference.models_dir',
    flag: '--models-dir',
    kind: text('path'),
    default: './models',
    help: 'Directory of models, by kind: `embedders/NAME/`, `generators/NAME/`, ...',
  }),
  predictorsDir: option({
    key: 'inference.ml_dir',
    flag: '--ml-dir',
    kind: text('path'),
    default: './predictors',
    help: 'Directory of tabular predictors, `NAME/model.onnx`.',
  }),
  allowDownloads: option({
    key: 'inference.allow_downloads',
    flag: '--allow-downloads',
    kind: flag(),
    default: true,
    help: 'Whether models may be fetched from the network; with `false` nothing is.',
  }),
  inferenceConcurrency: option({
    key: 'admission.inference.max_concurrent_requests',
    kind: integer(0, 65_536),
    default: limits.inferenceConcurrency,
    help: 'Requests that may work with models at one time; the others get 503. 0 sets no bound.',
  }),
  loadedModelsMax: option({
    key: 'inference.max_loaded_models',
    kind: integer(1, 1_024),
    default: limits.loadedModelsMax,
    help: 'Models that are loaded at one time; the least recently used makes room.',
  }),
  modelMemoryBytes: optional({
    key: 'inference.memory_limit',
    kind: size(256 * MiB, 16 * 1024 * 1024 * MiB),
    help: 'Memory that all loaded models may take together; half of the memory of the machine or container unless given.',
  }),
  modelKeepAliveMs: option({
    key: 'inference.keep_alive',
    kind: duration(0, 30 * dayMs),
    default: limits.modelKeepAliveMs,
    help: 'How long a model stays loaded after its last request; `0s` unloads it at once.',
  }),
  modelLoadMs: option({
    key: 'inference.load_timeout',
    kind: duration(secondMs, hourMs),
    default: limits.modelLoadMs,
    help: 'How long a model may take to load.',
  }),
  modelStallMs: option({
    key: 'inference.stall_timeout',
    kind: duration(secondMs, hourMs),
    default: limits.modelStallMs,
    help: 'How long the process of a model may make no progress with its work before it is ended.',
  }),
  preloadModels: option({
    key: 'inference.preload',
    kind: text(),
    default: 'none',
    help: 'Models to load at start, as `KIND/NAME` with commas between them, such as `generators/NAME`; `none` for none.',
  }),
  modelThreads: option({
    key: 'inference.threads',
    kind: integer(0, 1_024),
    default: 0,
    help: 'Threads of one model; 0 lets a short probe at its load choose.',
  }),
  contextTokensMax: option({
    key: 'inference.context_length',
    kind: integer(256, 1_048_576),
    default: limits.contextTokensMax,
    help: 'Most tokens that one generation may span, its prompt included; a model that knows fewer has fewer.',
  }),
  parallelSequences: option({
    key: 'inference.parallel_sequences',
    kind: integer(1, 256),
    default: limits.parallelSequences,
    help: 'Generations that run side by side in one model; further ones wait.',
  }),
  mediaHosts: option({
    key: 'inference.content_security.allowed_hosts',
    kind: text(),
    default: 'any',
    help: 'Hosts that requests may name for images and sounds, with commas between them; `.example.org` stands for all below it, `any` for every host.',
  }),
  blockPrivateMedia: option({
    key: 'inference.content_security.block_private_ips',
    kind: flag(),
    default: true,
    help: 'Whether images and sounds are fetched from public addresses only.',
  }),
  mediaBytesMax: option({
    key: 'inference.content_security.max_download_size',
    kind: size(0, 1024 * MiB),
    default: limits.mediaBytesMax,
    help: 'Bytes of all images and sounds of a request, as they were sent; 0 turns them off.',
    aliases: ['inference.content_security.max_download_size_bytes'],
  }),
  mediaDeadlineMs: option({
    key: 'inference.content_security.download_timeout',
    kind: duration(0, hourMs),
    default: limits.mediaDeadlineMs,
    help: 'How long one image or sound may take to fetch; `0s` for no deadline.',
  }),
  imageEdgeMax: option({
    key: 'inference.content_security.max_image_dimension',
    kind: integer(1, 65_535),
    default: limits.imageEdgeMax,
    help: 'Longer edge of an image, in pixels.',
  }),
  mediaPaths: option({
    key: 'inference.content_security.allowed_paths',
    kind: list('path'),
    default: [],
    help: 'Directories of this machine whose files `media` in templates may name as `file://`; none unless given.',
  }),
  hubUrl: option({
    key: 'inference.hub_url',
    flag: '--hub-url',
    kind: webAddress('none'),
    default: 'https://huggingface.co',
    help: 'Address of the model hub, or of a mirror of it, that models are pulled from; `none` for no hub.',
  }),
  packageIndex: option({
    key: 'inference.package_index',
    flag: '--package-index',
    kind: webAddress('none'),
    default: 'https://pypi.org/simple',
    help: 'Address of the Python package index, or of a mirror of it, that models in packages are pulled from; `none` for no index.',
  }),
  providerHosts: option({
    key: 'inference.provider_hosts',
    kind: hostPatterns(),
    default: [
      'loopback',
      'api.openai.com',
      'openrouter.ai',
      'generativelanguage.googleapis.com',
      'api.cohere.com',
      'bedrock-runtime.*.amazonaws.com',
    ],
    help: 'Hosts that providers of models may be called at, besides those that `connections` and `providers` name: `HOST`, `HOST:PORT`, `.example.org` for all below it, `*` for one label, `loopback`, `any`.',
    reloadable: true,
  }),
} as const;
