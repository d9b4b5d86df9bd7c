/** Names of what keeps the server from being ready; none means ready. */
export class Readiness {
  readonly #checks = new Map<string, { isFine: () => boolean; facts: () => object }>();

  /** Both are asked at every probe and must be cheap. `facts` are told while the check fails. */
  add(name: string, isFine: () => boolean, facts: () => object = () => ({})): void {
    this.#checks.set(name, { isFine, facts });
  }

  /** Status and body of `/readyz`. */
  answer(): { status: number; body: object } {
    const failing = [...this.#checks].filter(([, { isFine }]) => !isFine());
    if (failing.length === 0) return { status: 200, body: { status: 'ready' } };
    const body = { status: 'not_ready', failing: failing.map(([name]) => name) };
    return { status: 503, body: Object.assign(body, ...failing.map(([, { facts }]) => facts())) };
  }
}
