/** Names of what keeps the server from being ready; none means ready. */
export class Readiness {
  readonly #checks = new Map<string, () => boolean>();

  /** `isFine` is asked at every probe and must be cheap. */
  add(name: string, isFine: () => boolean): void {
    this.#checks.set(name, isFine);
  }

  failing(): string[] {
    return [...this.#checks].flatMap(([name, isFine]) => (isFine() ? [] : [name]));
  }
}

/** Status and body of `/readyz`. */
export function readinessAnswer(failing: readonly string[]): {
  status: number;
  body: { status: string; failing?: readonly string[] };
} {
  return failing.length === 0
    ? { status: 200, body: { status: 'ready' } }
    : { status: 503, body: { status: 'not_ready', failing } };
}
