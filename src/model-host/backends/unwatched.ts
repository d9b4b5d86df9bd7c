/** The context of work that a backend gives itself, such as a canary: nobody listens and nobody leaves. */
export function unwatched() {
  return { signal: new AbortController().signal, emit: () => undefined, progress: () => undefined };
}
