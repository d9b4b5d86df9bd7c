import { ConfigError } from '../config/config-error.ts';
import type { OptionName } from '../config/options.ts';
import type { StartServer } from '../server/running-server.ts';
import { listenAddress } from './listen-address.ts';
import { configFlags, configOf } from './load-config.ts';
import { runServer } from './serve.ts';
import type { Verb } from './verb.ts';

const defaultListen = '127.0.0.1:11433';
/** Those of a server without storage, whose one port is that of `--listen`. */
const inferenceOptions: OptionName[] = [
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
  return {
    name: 'inference',
    summary: 'Serve models alone, without a database: plain HTTP, no credentials.',
    usage: 'serve [--listen HOST:PORT] [options]',
    flags: [
      {
        flag: '--listen',
        value: 'HOST:PORT',
        help: `Where to listen; ${defaultListen} unless given. Port 0 takes a free one.`,
      },
      ...configFlags(inferenceOptions),
    ],
    async run(context) {
      const { positionals, flags } = context.args;
      if (positionals.length !== 1 || positionals[0] !== 'serve') {
        throw new ConfigError('usage: sundew inference serve [--listen HOST:PORT] [options]');
      }
      const { allowInsecurePublicBind } = configOf(context).config;
      const address = await listenAddress(flags.get('--listen') ?? defaultListen, allowInsecurePublicBind);
      return await runServer(context, address, load);
    },
  };
}
