import type { LoadBackend } from './backend.ts';
import { serveParent } from './serve-parent.ts';

/** Entry of every child: the native code of one backend is loaded here and nowhere else. */
serveParent(async (spec) => {
  const backend = (await import(`./backends/${spec.backend}/load.ts`)) as { readonly load: LoadBackend };
  return await backend.load(spec);
});
