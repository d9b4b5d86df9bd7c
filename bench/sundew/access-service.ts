/**
 * The services of one server behind three listeners: with authentication, without, and with authentication that knows only the
 * two users whose names begin with `few-`. Whatever else differs between two processes does not differ between these.
 * `--directory DIRECTORY --port PORT --open PORT --few PORT`
 */
import { AccessState } from '../../src/access/access-state.ts';
import { CatalogAuthenticator } from '../../src/access/authentication/authenticator.ts';
import { Passwords } from '../../src/access/authentication/passwords.ts';
import { limitsOf, loadConfig } from '../../src/config/load.ts';
import { RunningConfig } from '../../src/config/reload.ts';
import { ServerListener } from '../../src/http/listener/server-listener.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/observability/line-logger.ts';
import { writeToStandardError } from '../../src/observability/standard-error.ts';
import { createApp } from '../../src/server/create-app.ts';
import { openServices } from '../../src/server/open-services.ts';
import type { AccessRows } from '../../src/storage/catalog/access-records.ts';
import { scriptArguments } from '../engines/script-arguments.ts';

const given = scriptArguments('directory', 'port', 'open', 'few');
const clock = systemClock;
const logger = createLogger({ level: 'warn', format: 'json', clock, write: writeToStandardError });
const flags = new Map([
  ['--data-dir', given.directory],
  ['--auth', 'true'],
]);
const load = () =>
  loadConfig({ flags, environment: { SUNDEW__AUDIT__FILE: 'none' }, file: undefined, readFile: () => '' });
const config = new RunningConfig(load(), load);
const options = () => config.config;
const socket = new ServerListener('127.0.0.1', 0);
const services = await openServices({ config, logger, clock, socket });
await services.app.prepareCalls();
const rows = services.database.access.rows();
const listeners = [
  { port: given.port, authenticator: authenticatorOf(rows) },
  { port: given.open, authenticator: undefined },
  { port: given.few, authenticator: authenticatorOf(onlyFew(rows)) },
].map(({ port, authenticator }) => {
  const listener = new ServerListener('127.0.0.1', Number(port));
  const deps = { options, socket: listener, logger, clock, limits: limitsOf(options()), metrics: services.metrics };
  listener.attach(createApp(deps, services.app.routes, { authenticator }));
  return listener;
});

process.once('SIGTERM', async () => {
  await Promise.all([socket, ...listeners].map((listener) => listener.stop()));
  await services.close();
});

function authenticatorOf(known: AccessRows): CatalogAuthenticator {
  return new CatalogAuthenticator({ state: AccessState.of(known), clock, passwords: new Passwords() });
}

function onlyFew({ users, grants, apiKeys, rowFilters }: AccessRows): AccessRows {
  const isFew = (name: string) => name.startsWith('few-');
  return {
    users: users.filter(({ name }) => isFew(name)),
    grants: grants.filter(({ subject }) => isFew(subject)),
    memberships: [],
    apiKeys: apiKeys.filter(({ userName }) => isFew(userName)),
    rowFilters: rowFilters.filter(({ subject }) => isFew(subject)),
  };
}
