/** The first SIGTERM or SIGINT aborts the signal, for the reason that is made of its name; a second one ends this process. */
export function stopBySignal(
  reasonOf: (name: NodeJS.Signals) => unknown,
): Disposable & { readonly signal: AbortSignal } {
  const stop = new AbortController();
  const onSignal = (name: NodeJS.Signals) => {
    ignore();
    stop.abort(reasonOf(name));
  };
  const ignore = () => void process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  return { signal: stop.signal, [Symbol.dispose]: ignore };
}
