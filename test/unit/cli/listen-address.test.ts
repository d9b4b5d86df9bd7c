import { describe, expect, test } from 'bun:test';
import { listenAddress } from '../../../src/cli/listen-address.ts';
import { ConfigError } from '../../../src/config/config-error.ts';

const names: Readonly<Record<string, string[]>> = {
  localhost: ['127.0.0.1', '::1'],
  'this-machine': ['192.168.7.1'],
  everywhere: ['0.0.0.0'],
  both: ['127.0.0.1', '10.0.0.1'],
};

const resolve = async (host: string) =>
  names[host] ?? (/^[\d.]+$|:/.test(host) ? [host] : Promise.reject(new Error('ENOTFOUND')));
const listen = (text: string, allowed = false) => listenAddress(text, allowed, resolve);

describe('where the inference server listens', () => {
  test.each([
    ['127.0.0.1:11433', '127.0.0.1', 11_433],
    ['127.9.9.9:0', '127.9.9.9', 0],
    ['[::1]:80', '::1', 80],
    ['[::ffff:127.0.0.1]:80', '::ffff:127.0.0.1', 80],
    ['localhost:1', '127.0.0.1', 1],
  ])('%s is this machine alone', async (text, host, port) => {
    expect(await listen(text)).toEqual({ host, port });
  });

  test.each(['0.0.0.0:1', '[::]:1', ':1', '*:1', '192.168.0.1:1', 'this-machine:1', 'everywhere:1', 'both:1'])(
    '%s is refused unless it is allowed',
    async (text) => {
      expect(listen(text)).rejects.toThrow(/reached from other machines.*--allow-insecure-public-bind/);
      expect((await listen(text, true)).port).toBe(1);
    },
  );

  test.each(['', '11433', 'host', 'host:70000', 'http://host:1', '::1:80', 'host:x', 'nowhere:1'])(
    '%s is refused',
    async (text) => {
      expect(listen(text, true)).rejects.toBeInstanceOf(ConfigError);
    },
  );
});
