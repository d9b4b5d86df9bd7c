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
const guarded = new ServerListener('127.0.0.1', Number(given.port));
const services = await openServices({ config, logger, clock, socket: guarded });
const few = new CatalogAuthenticator({
  state: AccessState.of(onlyFew(services.database.access.rows())),
  clock,
  passwords: new Passwords(),
});
const others = [
  { port: given.open, authenticator: undefined },
  { port: given.few, authenticator: few },
].map(({ port, authenticator }) => {
  const socket = new ServerListener('127.0.0.1', Number(port));
  const deps = { options, socket, logger, clock, limits: limitsOf(options()), metrics: services.metrics };
  socket.attach(createApp(deps, services.app.routes, { authenticator }));
  return socket;
});
guarded.attach(services.app);

process.once('SIGTERM', async () => {
  await Promise.all([guarded, ...others].map((listener) => listener.stop()));
  await services.close();
});

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
