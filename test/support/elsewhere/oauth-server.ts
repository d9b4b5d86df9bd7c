import { type SeenRequest, UpstreamServer } from './upstream-server.ts';

interface IssuedCode {
  readonly challenge: string;
  readonly redirectUri: string;
  used: boolean;
}

/** The settings that a test changes. */
interface Behaviour {
  /** The user says no. */
  denies: boolean;
  /** No place of it answers but the login page. */
  down: boolean;
  /** Every place leads to another. */
  moved: boolean;
  /** The client is none of its own any more. */
  refusesClient: boolean;
  /** The status with which the models are refused; 0: they are not. */
  modelsRefusal: number;
  /** Seconds that an access token is good for. */
  lifetimeSeconds: number;
  /** Logins come with refresh tokens. */
  refreshes: boolean;
  /** Refresh tokens are exchanged for new ones. */
  rotates: boolean;
}

/**
 * An authorization server of one user: code grant with PKCE (RFC 6749, 7636), refresh, revocation (RFC 7009), and the
 * account and models that its tokens open. It checks everything that it is given.
 */
export class OAuthServer implements AsyncDisposable {
  static readonly clientId = 'sundew-client';
  static readonly clientSecret = 'client-secret-9d2f';
  readonly behaviour: Behaviour = {
    denies: false,
    down: false,
    moved: false,
    refusesClient: false,
    modelsRefusal: 0,
    lifetimeSeconds: 3_600,
    refreshes: true,
    rotates: true,
  };
  /** Every token and code that was ever issued. */
  readonly issued: string[] = [];
  readonly requests: string[] = [];
  readonly #codes = new Map<string, IssuedCode>();
  readonly #accessTokens = new Set<string>();
  readonly #refreshTokens = new Set<string>();
  /** Answers wait for it, though what they say is decided on before. */
  answersWait: Promise<void> = Promise.resolve();
  readonly #server = new UpstreamServer(async (request) => {
    const answer = this.#answer(request);
    await this.answersWait;
    return answer;
  });

  #answer({ method, path, text, authorization }: SeenRequest): Response {
    this.requests.push(`${method} ${path}`);
    if (this.behaviour.down) return new Response('down', { status: 503 });
    if (this.behaviour.moved)
      return new Response(null, { status: 302, headers: { location: `${this.url}/elsewhere` } });
    if (path === '/token') return this.#token(new URLSearchParams(text));
    if (path === '/revoke') return this.#revoke(new URLSearchParams(text));
    const isKnown = this.#accessTokens.has((authorization ?? '').replace('Bearer ', ''));
    if (!isKnown) return Response.json({ error: { message: `no such token: ${authorization}` } }, { status: 401 });
    if (path === '/account') return Response.json({ email: 'ada@example.org', name: 'Ada', plan_enabled: true });
    const { modelsRefusal } = this.behaviour;
    if (path === '/models' && modelsRefusal > 0) return Response.json({ error: 'no plan' }, { status: modelsRefusal });
    if (path === '/models')
      return Response.json({ data: [{ id: 'model-one', owned_by: 'them' }, { id: 'model-two' }] });
    return new Response(null, { status: 404 });
  }

  get url(): string {
    return this.#server.url;
  }

  /** The options of a server of ours that go with this one. */
  get environment(): Record<string, string> {
    return {
      SUNDEW__PARTNER__AUTHORIZATION_URL: `${this.#server.url}/login?tenant=a`,
      SUNDEW__PARTNER__TOKEN_URL: `${this.#server.url}/token`,
      SUNDEW__PARTNER__REVOCATION_URL: `${this.#server.url}/revoke`,
      SUNDEW__PARTNER__ACCOUNT_URL: `${this.#server.url}/account`,
      SUNDEW__PARTNER__MODELS_URL: `${this.#server.url}/models`,
      SUNDEW__PARTNER__CLIENT_ID: OAuthServer.clientId,
      SUNDEW__PARTNER__CLIENT_SECRET: OAuthServer.clientSecret,
      SUNDEW__PARTNER__SCOPES: 'models,offline',
    };
  }

  /** The user logs in at the page and is sent back; the address that their browser then opens. */
  login(authorizationUrl: string): string {
    const { searchParams: asked } = new URL(authorizationUrl);
    const redirectUri = asked.get('redirect_uri') ?? '';
    const fits =
      asked.get('response_type') === 'code' &&
      asked.get('client_id') === OAuthServer.clientId &&
      asked.get('code_challenge_method') === 'S256' &&
      asked.get('scope') === 'models offline' &&
      asked.get('tenant') === 'a' &&
      /^http:\/\/127\.0\.0\.1:\d+\/callback$/.test(redirectUri);
    if (!fits) throw new Error(`the login page does not understand ${authorizationUrl}`);
    const back = new URL(redirectUri);
    back.searchParams.set('state', asked.get('state') ?? '');
    if (this.behaviour.denies) {
      back.searchParams.set('error', 'access_denied');
      return back.href;
    }
    const code = this.#issue('code');
    this.#codes.set(code, { challenge: asked.get('code_challenge') ?? '', redirectUri, used: false });
    back.searchParams.set('code', code);
    return back.href;
  }

  /** The user takes everything back at the partner's own pages. */
  forgetTokens(which: 'access' | 'all'): void {
    this.#accessTokens.clear();
    if (which === 'all') this.#refreshTokens.clear();
  }

  isGood(token: string): boolean {
    return this.#accessTokens.has(token) || this.#refreshTokens.has(token);
  }

  #issue(kind: string): string {
    const token = `${kind}-${crypto.randomUUID()}`;
    this.issued.push(token);
    return token;
  }

  #token(form: URLSearchParams): Response {
    const refused = (error: string) =>
      Response.json({ error, error_description: `${error}: ${form}` }, { status: 400 });
    const isClient =
      form.get('client_id') === OAuthServer.clientId && form.get('client_secret') === OAuthServer.clientSecret;
    if (!isClient || this.behaviour.refusesClient) return refused('invalid_client');
    if (form.get('grant_type') === 'refresh_token') {
      const given = form.get('refresh_token') ?? '';
      if (!this.#refreshTokens.has(given)) return refused('invalid_grant');
      if (this.behaviour.rotates) this.#refreshTokens.delete(given);
      return this.#tokens(this.behaviour.rotates);
    }
    const code = this.#codes.get(form.get('code') ?? '');
    const verifier = form.get('code_verifier') ?? '';
    const challenge = new Bun.CryptoHasher('sha256').update(verifier).digest('base64url');
    const fits =
      form.get('grant_type') === 'authorization_code' &&
      code?.used === false &&
      code.challenge === challenge &&
      code.redirectUri === form.get('redirect_uri');
    if (!fits) return refused('invalid_grant');
    code.used = true;
    return this.#tokens(this.behaviour.refreshes);
  }

  #tokens(withRefresh: boolean): Response {
    const access = this.#issue('access');
    this.#accessTokens.add(access);
    const refresh = withRefresh ? this.#issue('refresh') : undefined;
    if (refresh !== undefined) this.#refreshTokens.add(refresh);
    const lifetime = { token_type: 'Bearer', expires_in: this.behaviour.lifetimeSeconds };
    return Response.json({ access_token: access, ...(refresh && { refresh_token: refresh }), ...lifetime });
  }

  #revoke(form: URLSearchParams): Response {
    const token = form.get('token') ?? '';
    this.#accessTokens.delete(token);
    if (this.#refreshTokens.delete(token)) this.#accessTokens.clear();
    return new Response(null, { status: 200 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
