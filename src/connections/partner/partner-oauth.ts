import type { Config } from '../../config/options.ts';
import type { ProviderHttp, ProviderRequest } from '../../inference/providers/client/provider-http.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { PartnerTokens } from './partner-accounts.ts';

type PartnerOptions = Pick<
  Config,
  | 'partnerAuthorizationUrl'
  | 'partnerTokenUrl'
  | 'partnerRevocationUrl'
  | 'partnerAccountUrl'
  | 'partnerModelsUrl'
  | 'partnerClientId'
  | 'partnerClientSecret'
  | 'partnerScopes'
>;

interface PartnerOAuthDeps {
  readonly options: () => PartnerOptions;
  readonly http: ProviderHttp;
  readonly clock: Clock;
}

interface PartnerProfile {
  readonly email: string;
  readonly label: string;
  readonly planEnabled: boolean;
}

const bounds = { timeoutMs: 10_000, answerBytesMax: 4 * 1024 * 1024 };
/** In messages. */
const provider = 'partner';
const textCharsMax = 320;

/** The partner's authorization server, as RFC 6749 (code grant), 7636 and 7009 have it. */
export class PartnerOAuth {
  readonly #deps: PartnerOAuthDeps;

  constructor(deps: PartnerOAuthDeps) {
    this.#deps = deps;
  }

  /** Where the user's browser begins. Throws `partner_not_configured`. */
  authorizationUrl(redirectUri: string, { challenge, state }: { challenge: string; state: string }): string {
    const { partnerScopes } = this.#deps.options();
    const url = new URL(this.#configured('partnerAuthorizationUrl', 'authorization_url'));
    const parameters = {
      response_type: 'code',
      client_id: this.#clientId(),
      redirect_uri: redirectUri,
      ...(partnerScopes.length > 0 && { scope: partnerScopes.join(' ') }),
      state,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  async exchange(code: string, verifier: string, redirectUri: string, signal: AbortSignal): Promise<PartnerTokens> {
    const form = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: redirectUri };
    return await this.#tokens(form, [code, verifier], signal, undefined);
  }

  async refresh(refreshToken: string, signal: AbortSignal): Promise<PartnerTokens> {
    const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
    return await this.#tokens(form, [refreshToken], signal, refreshToken);
  }

  /** Whether the partner has confirmed that the tokens are void. Never throws. */
  async revoke({ refreshToken, accessToken }: PartnerTokens, signal: AbortSignal): Promise<boolean> {
    const { partnerRevocationUrl: url } = this.#deps.options();
    if (url === undefined) return false;
    const token = refreshToken ?? accessToken;
    const hint = refreshToken === undefined ? 'access_token' : 'refresh_token';
    try {
      const request = this.#formRequest(url, { token, token_type_hint: hint }, [token]);
      await this.#deps.http.take(request, signal, bounds);
      return true;
    } catch {
      return false;
    }
  }

  /** The owner of the account; empty where the partner has no address for it. */
  async profile(token: string, signal: AbortSignal): Promise<PartnerProfile> {
    const { partnerAccountUrl: url } = this.#deps.options();
    if (url === undefined) return { email: '', label: '', planEnabled: true };
    const answer = await this.#deps.http.json(tokenRequest(url, token), signal, bounds);
    const members = typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : {};
    const text = (name: string) => {
      const value = members[name];
      return typeof value === 'string' ? value.slice(0, textCharsMax) : '';
    };
    const email = text('email');
    return { email, label: text('label') || text('name') || email, planEnabled: members.plan_enabled !== false };
  }

  /** The names of the models that the account may use. */
  async models(token: string, signal: AbortSignal): Promise<{ id: string; ownedBy: string }[]> {
    const url = this.#configured('partnerModelsUrl', 'models_url');
    const answer = await this.#deps.http.json(tokenRequest(url, token), signal, bounds);
    const list = typeof answer === 'object' && answer !== null && 'data' in answer ? answer.data : undefined;
    if (!Array.isArray(list)) throw new ServiceError('upstream_failed', 'the partner answers without a list of models');
    return (list as Record<string, unknown>[]).flatMap((each) =>
      typeof each?.id === 'string'
        ? [{ id: each.id, ownedBy: typeof each.owned_by === 'string' ? each.owned_by : 'partner' }]
        : [],
    );
  }

  async #tokens(
    form: Readonly<Record<string, string>>,
    secrets: readonly string[],
    signal: AbortSignal,
    refreshToken: string | undefined,
  ): Promise<PartnerTokens> {
    const url = this.#configured('partnerTokenUrl', 'token_url');
    const answer = await this.#deps.http.json(this.#formRequest(url, form, secrets), signal, bounds);
    const members = typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>) : {};
    const { access_token, refresh_token, expires_in } = members;
    if (typeof access_token !== 'string' || access_token === '') {
      throw new ServiceError('upstream_failed', 'the partner answers without an access token');
    }
    // Some servers write the number as a text.
    const lifetimeMs = Number(expires_in ?? Number.NaN) * 1_000;
    const expiresMs = this.#deps.clock.nowMs() + lifetimeMs;
    return {
      accessToken: access_token,
      refreshToken: typeof refresh_token === 'string' && refresh_token !== '' ? refresh_token : refreshToken,
      // Of a time that is none, or too far to be kept as a number, the partner's own refusal tells.
      expiresMs: lifetimeMs > 0 && Number.isSafeInteger(Math.ceil(expiresMs)) ? expiresMs : undefined,
    };
  }

  #formRequest(address: string, form: Readonly<Record<string, string>>, secrets: readonly string[]): ProviderRequest {
    const { partnerClientSecret } = this.#deps.options();
    const url = new URL(address);
    const secret = partnerClientSecret && this.#deps.http.credentials.resolve(partnerClientSecret, url);
    const body = new URLSearchParams({
      ...form,
      client_id: this.#clientId(),
      ...(secret && { client_secret: secret }),
    });
    return {
      provider,
      url,
      headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
      secrets: secret ? [...secrets, secret] : secrets,
    };
  }

  #clientId(): string {
    return this.#configured('partnerClientId', 'client_id');
  }

  #configured(
    name: 'partnerAuthorizationUrl' | 'partnerTokenUrl' | 'partnerModelsUrl' | 'partnerClientId',
    key: string,
  ) {
    const value = this.#deps.options()[name];
    if (value !== undefined) return value;
    throw new ServiceError('partner_not_configured', `the partner is not configured; set "partner.${key}"`);
  }
}

function tokenRequest(url: string, token: string): ProviderRequest {
  const headers = { accept: 'application/json', authorization: `Bearer ${token}` };
  return { provider, url: new URL(url), method: 'GET', headers, secrets: [token] };
}
