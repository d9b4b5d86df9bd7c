import { ConfigError } from '../config/config-error.ts';
import type { Config, OptionName } from '../config/options.ts';
import type { StartServer } from '../server/running-server.ts';
import { verbOfActions } from './actions.ts';
import { listenAddress } from './listen-address.ts';
import { configFlags, configOf } from './load-config.ts';
import { runServer } from './serve.ts';
import type { Verb, VerbContext } from './verb.ts';

const defaultListen = '127.0.0.1:11433';
/** Those of a server without storage, whose one port is that of `--listen`. */
const inferenceOptions: OptionName[] = [
  'allowInsecurePublicBind',
  'drainDeadlineMs',
  'logLevel',
  'logFormat',
  'modelsDir',
  'predictorsDir',
  'allowDownloads',
  'hubUrl',
  'packageIndex',
];

/** `sundew inference serve`: the inference plane alone, without storage. */
export function inferenceVerb(load: () => Promise<StartServer>): Verb {
  const serve = async (context: VerbContext) => {
    const loaded = configOf(context);
    const { config } = loaded;
    refuseUnheard(config);
    const { allowInsecurePublicBind } = config;
    const address = await listenAddress(context.args.flags.get('--listen') ?? defaultListen, allowInsecurePublicBind);
    return await runServer(context, { loaded, address, load });
  };
  return verbOfActions(
    {
      name: 'inference',
      summary: 'Serve models alone, without a database: plain HTTP, no credentials.',
      actions: [{ name: 'serve', takes: [], help: 'Start the server.', run: serve }],
      flags: [
        {
          flag: '--listen',
          value: 'HOST:PORT',
          help: `Where to listen; ${defaultListen} unless given. Port 0 takes a free one.`,
        },
        ...configFlags(inferenceOptions),
      ],
    },
    (run, context) => run(context),
  );
}

/** This server has neither credentials nor TLS. Where the configuration asks for them, it does not start. */
function refuseUnheard({ authEnabled, tlsCert }: Config): void {
  const asked = authEnabled ? 'auth.enabled' : tlsCert === undefined ? undefined : 'tls.cert';
  if (asked === undefined) return;
  throw new ConfigError(`"inference serve" has no credentials and no TLS; leave ${asked} out, or use "sundew serve"`);
}
