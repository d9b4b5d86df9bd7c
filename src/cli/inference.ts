import { ConfigError } from '../config/load.ts';
import type { OptionName } from '../config/options.ts';
import type { StartServer } from '../server/running-server.ts';
import { listenAddress } from './listen-address.ts';
import { configFlags } from './load-config.ts';
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
];
const publicFlag = '--allow-insecure-public-bind';

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
      {
        flag: publicFlag,
        help: 'Listen where other machines can reach it. Only behind a trusted proxy with TLS and authentication.',
      },
      ...configFlags(inferenceOptions),
    ],
    async run(context) {
      const { positionals, flags } = context.args;
      if (positionals.length !== 1 || positionals[0] !== 'serve') {
        throw new ConfigError('usage: sundew inference serve [--listen HOST:PORT] [options]');
      }
      const address = await listenAddress(flags.get('--listen') ?? defaultListen, flags.has(publicFlag));
      return await runServer(context, address, load);
    },
  };
}
