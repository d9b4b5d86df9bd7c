import { describe, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OAuthServer } from '../../support/elsewhere/oauth-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const root = '/db/v1/connections';

interface Authorization {
  attempt_id: string;
  authorization_url: string;
  expires_at: number;
}

async function authorize(server: TestServer, connectionId = 'mine'): Promise<Authorization> {
  const answer = await server.send<Authorization>('POST', `${root}/partner/authorize`, { connection_id: connectionId });
  expect(answer.status).toBe(200);
  return answer.body;
}

async function attempt(server: TestServer, id: string) {
  return (await server.send('GET', `${root}/partner/attempts/${id}`)).body;
}

async function accounts(server: TestServer): Promise<Record<string, unknown>[]> {
  return (await server.send<{ accounts: [] }>('GET', `${root}/partner/accounts`)).body.accounts;
}

/** Logs in as a user with a browser does. The status and text of the page that they end on. */
async function logIn(partner: OAuthServer, { authorization_url }: Authorization): Promise<[number, string]> {
  return await open(partner.login(authorization_url));
}

async function open(url: string): Promise<[number, string]> {
  const page = await fetch(url);
  return [page.status, await page.text()];
}

async function connected(server: TestServer, partner: OAuthServer): Promise<void> {
  const begun = await authorize(server);
  await logIn(partner, begun);
  expect(await attempt(server, begun.attempt_id)).toMatchObject({ status: 'completed' });
}

const disconnect = (server: TestServer, id = 'mine') => server.send('POST', `${root}/${id}/partner/disconnect`);
const models = (server: TestServer, id = 'mine') => server.send('GET', `${root}/${id}/partner/models`);

describe('a login at the partner', () => {
  test('goes from pending to completed, and the account is there with its models', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    expect(await accounts(server)).toEqual([]);
    const begun = await authorize(server);
    expect(begun.expires_at * 1_000).toBeGreaterThan(Date.now());
    expect(await attempt(server, begun.attempt_id)).toEqual({ status: 'pending', connection_id: 'mine', error: '' });
    const [status, page] = await logIn(partner, begun);
    expect([status, page]).toEqual([200, expect.stringContaining('The account is connected.')]);
    expect(await attempt(server, begun.attempt_id)).toEqual({ status: 'completed', connection_id: 'mine', error: '' });
    expect(await accounts(server)).toEqual([
      { connection_id: 'mine', email: 'ada@example.org', label: 'Ada', connected: true, plan_enabled: true },
    ]);
    expect((await models(server)).body).toEqual({
      object: 'list',
      data: [
        { id: 'model-one', object: 'model', owned_by: 'them' },
        { id: 'model-two', object: 'model', owned_by: 'partner' },
      ],
    });
  });

  test('that the user refuses has failed', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    partner.behaviour.denies = true;
    const begun = await authorize(server);
    expect((await logIn(partner, begun))[1]).toContain('The login was not completed.');
    expect(await attempt(server, begun.attempt_id)).toMatchObject({
      status: 'failed',
      error: 'the partner refused the login: access_denied',
    });
    expect(await accounts(server)).toEqual([]);
  });

  test('takes its state once', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    const begun = await authorize(server);
    const callback = partner.login(begun.authorization_url);
    expect((await open(callback))[0]).toBe(200);
    const exchanges = partner.requests.length;
    expect((await open(callback))[0]).toBe(400);
    expect(partner.requests.length).toBe(exchanges);
    expect(await attempt(server, begun.attempt_id)).toMatchObject({ status: 'completed' });
  });

  test('with another state, path, method or host is not this login', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    const begun = await authorize(server);
    const callback = new URL(partner.login(begun.authorization_url));
    const forged = new URL(callback);
    forged.searchParams.set('state', 'guessed');
    expect((await open(forged.href))[0]).toBe(400);
    forged.searchParams.delete('state');
    expect((await open(forged.href))[0]).toBe(400);
    expect((await open(callback.href.replace('/callback', '/other')))[0]).toBe(404);
    expect((await fetch(callback, { method: 'POST' })).status).toBe(405);
    expect((await fetch(callback, { headers: { host: 'evil.example.net' } })).status).toBe(403);
    expect(await attempt(server, begun.attempt_id)).toMatchObject({ status: 'pending' });
    expect((await open(callback.href))[0]).toBe(200);
  });

  test('whose code was swapped for another is refused by the proof key', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    const [mine, theirs] = [await authorize(server, 'mine'), await authorize(server, 'theirs')];
    const callback = new URL(partner.login(mine.authorization_url));
    const other = new URL(partner.login(theirs.authorization_url));
    callback.searchParams.set('code', other.searchParams.get('code') ?? '');
    await open(callback.href);
    const failed = await attempt(server, mine.attempt_id);
    expect(failed).toMatchObject({ status: 'failed', error: expect.stringContaining('HTTP 400: invalid_grant') });
    for (const issued of [...partner.issued, OAuthServer.clientSecret]) {
      expect(JSON.stringify(failed)).not.toContain(issued);
    }
  });

  test('of a partner that does not answer has failed, without a word of addresses', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    const begun = await authorize(server);
    partner.behaviour.down = true;
    await logIn(partner, begun);
    const failed = await attempt(server, begun.attempt_id);
    expect(failed).toMatchObject({ status: 'failed', error: 'the provider "partner" answered HTTP 503: down' });
  });

  test('expires after ten minutes, and the callback is closed with the last one', async () => {
    await using partner = new OAuthServer();
    const clock = new FakeClock();
    await using server = await startTestServer({ environment: partner.environment, clock });
    const begun = await authorize(server);
    expect(begun.expires_at).toBe(Math.floor(clock.nowMs() / 1_000) + 600);
    const callback = partner.login(begun.authorization_url);
    await clock.advance(599_000);
    expect(await attempt(server, begun.attempt_id)).toMatchObject({ status: 'pending' });
    await clock.advance(1_000);
    expect(await attempt(server, begun.attempt_id)).toMatchObject({ status: 'expired', error: '' });
    await until(() =>
      fetch(callback).then(
        () => false,
        () => true,
      ),
    );
    await clock.advance(3_600_000);
    const gone = await server.send('GET', `${root}/partner/attempts/${begun.attempt_id}`);
    expect([gone.status, gone.body.code]).toEqual([404, 'attempt_not_found']);
    // A later login has a listener of its own.
    await logIn(partner, await authorize(server));
    expect(await accounts(server)).toHaveLength(1);
  });

  test('is bounded in number, and needs a name', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    for (const connection_id of ['', 'a b', '../x', 'x'.repeat(65)]) {
      expect((await server.send('POST', `${root}/partner/authorize`, { connection_id })).status).toBe(400);
    }
    for (let number = 0; number < 100; number += 1) await authorize(server, `c${number}`);
    const { status, body } = await server.send('POST', `${root}/partner/authorize`, { connection_id: 'more' });
    expect([status, body.code]).toEqual([503, 'unavailable']);
  });

  test('needs a partner', async () => {
    await using server = await startTestServer();
    const { status, body } = await server.send('POST', `${root}/partner/authorize`, { connection_id: 'mine' });
    expect([status, body.code, body.retryable]).toEqual([503, 'partner_not_configured', false]);
    expect(await accounts(server)).toEqual([]);
    expect((await models(server)).body.code).toBe('connection_not_found');
    expect((await disconnect(server)).body).toEqual({ revocation_confirmed: false });
  });
});

describe('a connected account', () => {
  test('renews its token before it ends, and when the partner has taken it back', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    partner.behaviour.lifetimeSeconds = 30;
    await connected(server, partner);
    partner.behaviour.lifetimeSeconds = 3_600;
    const exchanges = () => partner.requests.filter((each) => each === 'POST /token').length;
    const answers = await Promise.all([models(server), models(server), models(server)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(exchanges()).toBe(2);
    partner.forgetTokens('access');
    expect((await models(server)).status).toBe(200);
    expect(exchanges()).toBe(3);
  });

  test('keeps its refresh token where the partner gives no other', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    Object.assign(partner.behaviour, { lifetimeSeconds: 30, rotates: false });
    await connected(server, partner);
    for (let turn = 0; turn < 3; turn += 1) expect((await models(server)).status).toBe(200);
  });

  test.each([1e306, 1e300, -1, '1e999', 'soon'])(
    'with tokens that last %p seconds is used until the partner refuses',
    async (seconds) => {
      await using partner = new OAuthServer();
      await using server = await startTestServer({ environment: partner.environment });
      Object.assign(partner.behaviour, { lifetimeSeconds: seconds });
      await connected(server, partner);
      for (let turn = 0; turn < 2; turn += 1) expect((await models(server)).status).toBe(200);
      expect(partner.requests.filter((each) => each === 'POST /token').length).toBe(1);
    },
  );

  test('without a refresh token is used until the partner refuses, whatever the clock says', async () => {
    const clock = new FakeClock();
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment, clock });
    partner.behaviour.refreshes = false;
    await connected(server, partner);
    clock.jump(30 * 24 * 3_600_000);
    expect((await models(server)).status).toBe(200);
    expect(await accounts(server)).toMatchObject([{ connection_id: 'mine', connected: true }]);
    partner.forgetTokens('all');
    expect((await models(server)).body.code).toBe('not_connected');
    expect(await accounts(server)).toMatchObject([{ connection_id: 'mine', connected: false }]);
  });

  test.each([400, 403])(
    'without a refresh token is not lost by a refusal with %p, which may be of the models alone',
    async (status) => {
      await using partner = new OAuthServer();
      await using server = await startTestServer({ environment: partner.environment });
      Object.assign(partner.behaviour, { refreshes: false, modelsRefusal: status });
      await connected(server, partner);
      const refused = await models(server);
      expect([refused.status, refused.body.code]).toEqual([502, 'upstream_refused']);
      partner.behaviour.modelsRefusal = 0;
      expect((await models(server)).status).toBe(200);
    },
  );

  test('whose tokens were taken back says so, until it is authorized again', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    await connected(server, partner);
    partner.forgetTokens('all');
    const refused = await models(server);
    expect([refused.status, refused.body.code]).toEqual([409, 'not_connected']);
    expect(await accounts(server)).toMatchObject([{ connection_id: 'mine', label: 'Ada', connected: false }]);
    expect((await models(server)).status).toBe(409);
    await connected(server, partner);
    expect((await models(server)).status).toBe(200);
  });

  test('is not lost with a partner that is down', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    partner.behaviour.lifetimeSeconds = 30;
    await connected(server, partner);
    partner.behaviour.down = true;
    const failed = await models(server);
    expect([failed.status, failed.body.code]).toEqual([502, 'upstream_failed']);
    partner.behaviour.down = false;
    expect((await models(server)).status).toBe(200);
  });

  test.each(['moved', 'refusesClient'] as const)(
    'is not lost with a partner that says nothing of it: %s',
    async (way) => {
      await using partner = new OAuthServer();
      await using server = await startTestServer({ environment: partner.environment });
      partner.behaviour.lifetimeSeconds = 30;
      await connected(server, partner);
      partner.behaviour[way] = true;
      expect((await models(server)).status).toBe(502);
      expect(partner.requests.filter((each) => each.endsWith('/elsewhere'))).toEqual([]);
      partner.behaviour[way] = false;
      expect((await models(server)).status).toBe(200);
    },
  );

  test('is not lost by a caller that leaves while it is renewed', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    partner.behaviour.lifetimeSeconds = 30;
    await connected(server, partner);
    const wait = Promise.withResolvers<void>();
    partner.answersWait = wait.promise;
    const before = partner.requests.length;
    const leaving = new AbortController();
    const left = fetch(`${server.url}${root}/mine/partner/models`, { signal: leaving.signal }).catch(() => 'left');
    await until(async () => partner.requests.length > before);
    leaving.abort();
    expect(await left).toBe('left');
    // The server has heard of it once another request is answered.
    await accounts(server);
    wait.resolve();
    expect((await models(server)).status).toBe(200);
  });

  test('is there after a restart, in a secret that nobody reads or writes by its name', async () => {
    await using partner = new OAuthServer();
    await using first = await startTestServer();
    const { directory } = first;
    const options = { directory: join(directory, 'kept'), environment: partner.environment };
    {
      await using server = await startTestServer(options);
      await connected(server, partner);
    }
    await using server = await startTestServer(options);
    expect((await models(server)).status).toBe(200);
    const { body } = await server.send<{ secrets: object[] }>('GET', '/db/v1/secrets');
    expect(body.secrets).toMatchObject([{ key: 'partner.mine', status: 'configured_file', hosts: [] }]);
    for (const [method, content] of [
      ['PUT', { value: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      expect((await server.send(method, '/db/v1/secrets/partner.mine', content)).status).toBe(400);
    }
    expect(readFileSync(join(options.directory, 'secret-store.json'), 'utf8')).toContain('refreshToken');
  });

  test('that was written by hand and is none has no login, and can be disconnected', async () => {
    await using server = await startTestServer();
    const file = join(server.directory, 'secret-store.json');
    writeFileSync(
      file,
      '{"secrets":[{"key":"partner.odd","value":"not an account"},{"key":"partner.nil","value":"null"}]}',
    );
    expect(await accounts(server)).toMatchObject([
      { connection_id: 'nil', connected: false },
      { connection_id: 'odd', connected: false },
    ]);
    expect((await models(server, 'odd')).status).toBe(409);
    expect((await disconnect(server, 'odd')).body).toEqual({ revocation_confirmed: false });
    expect(await accounts(server)).toHaveLength(1);
  });

  test('is forgotten, and the partner confirms that its tokens are void', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    await connected(server, partner);
    expect((await disconnect(server)).body).toEqual({ revocation_confirmed: true });
    expect(partner.issued.some((token) => partner.isGood(token))).toBe(false);
    expect(await accounts(server)).toEqual([]);
    expect((await models(server)).status).toBe(404);
    expect((await disconnect(server)).body).toEqual({ revocation_confirmed: false });
  });

  test('is forgotten too where the partner confirms nothing', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    await connected(server, partner);
    partner.behaviour.down = true;
    expect((await disconnect(server)).body).toEqual({ revocation_confirmed: false });
    expect(await accounts(server)).toEqual([]);
    expect(readFileSync(join(server.directory, 'secret-store.json'), 'utf8')).not.toContain('refreshToken');
  });

  test('a login that is pending when its connection is disconnected does not bring it back', async () => {
    await using partner = new OAuthServer();
    await using server = await startTestServer({ environment: partner.environment });
    const begun = await authorize(server);
    const callback = partner.login(begun.authorization_url);
    await disconnect(server);
    expect((await open(callback))[0]).toBe(400);
    expect(await attempt(server, begun.attempt_id)).toMatchObject({ status: 'failed' });
    expect(await accounts(server)).toEqual([]);
  });
});

test('no token, code or secret of the partner is in an answer or a log line', async () => {
  await using partner = new OAuthServer();
  await using server = await startTestServer({ environment: partner.environment });
  const answers: string[] = [];
  const keep = (answer: { headers: Headers; body: unknown }) =>
    void answers.push(JSON.stringify([...answer.headers]), JSON.stringify(answer.body));
  await connected(server, partner);
  keep(await models(server));
  partner.forgetTokens('all');
  keep(await models(server));
  await connected(server, partner);
  for (const path of [`${root}/partner/accounts`, root, '/db/v1/secrets', '/db/v1/status']) {
    keep(await server.send('GET', path));
  }
  keep(await disconnect(server));
  expect(partner.issued.length).toBeGreaterThan(4);
  const told = [...answers, ...server.logLines].join('\n');
  for (const secret of [...partner.issued, OAuthServer.clientSecret]) expect(told).not.toContain(secret);
});
