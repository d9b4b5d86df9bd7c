import { type Answer, startTestServer, type TestServer } from './test-server.ts';

export const adminPassword = 'correct horse battery';

export function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

export interface Permission {
  resource: string;
  resource_type: 'table' | 'inference' | 'user' | '*';
  type: 'read' | 'write' | 'admin';
}

export const table = (resource: string, type: Permission['type']): Permission => ({
  resource,
  resource_type: 'table',
  type,
});

/** A server that asks for credentials, and the password of its administrator. */
export class GuardedServer implements AsyncDisposable {
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  /** Sends with a credential; none with undefined. */
  as<Body = Record<string, unknown>>(
    credential: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer<Body>> {
    const authorization = credential === undefined ? {} : { authorization: credential };
    return this.server.send<Body>(method, path, body, { ...headers, ...authorization });
  }

  asAdmin<Body = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<Answer<Body>> {
    return this.as<Body>(basic('admin', adminPassword), method, path, body);
  }

  /** Makes a user with these grants. Returns its credential. */
  async user(name: string, initial_policies: readonly Permission[], metadata: object = {}): Promise<string> {
    const password = `password of ${name}`;
    const { status, body } = await this.asAdmin('POST', `/auth/v1/users/${name}`, {
      password,
      initial_policies,
      metadata,
    });
    if (status !== 201) throw new Error(`the user ${name} was not made: ${JSON.stringify(body)}`);
    return basic(name, password);
  }

  /** Makes a key of a user. Returns its id and its credential. */
  async key(user: string, request: Record<string, unknown> = {}): Promise<{ id: string; credential: string }> {
    const { status, body } = await this.asAdmin('POST', `/auth/v1/users/${user}/api-keys`, { name: 'k', ...request });
    if (status !== 201) throw new Error(`the key of ${user} was not made: ${JSON.stringify(body)}`);
    return { id: String(body.key_id), credential: `Bearer ${body.encoded}` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

export async function startGuardedServer(
  options: Parameters<typeof startTestServer>[0] & { password?: string } = {},
): Promise<GuardedServer> {
  const { set, environment, ...more } = options;
  const server = await startTestServer({
    ...more,
    set: { '--auth': 'true', ...set },
    environment: { SUNDEW__AUTH__ADMIN_PASSWORD: adminPassword, ...environment },
  });
  return new GuardedServer(server);
}
