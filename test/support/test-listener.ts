import type { AppDependencies } from '../../src/http/listener/app.ts';
import { ServerListener } from '../../src/http/listener/server-listener.ts';
import { testApp } from './test-app.ts';

/** An application behind a real port, closed at the end of the scope. */
export function testListener(
  deps: Partial<AppDependencies> & Pick<AppDependencies, 'routes'>,
  tls?: ConstructorParameters<typeof ServerListener>[3],
) {
  const listener = new ServerListener('127.0.0.1', 0, undefined, tls);
  const extendIdle = (request: Request, seconds: number) => listener.extendIdle(request, seconds);
  const app = testApp({ extendIdle, ...deps });
  listener.attach(app);
  return { app, listener, url: listener.url, port: listener.port, [Symbol.asyncDispose]: () => listener.stop() };
}
