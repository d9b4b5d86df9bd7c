// Named, so that an import of them comes as far as the sentence below.
export const open = undefined;
export const SundewError = undefined;

throw new Error('the embedded database needs Bun 1.4.5 or newer; "sundew/client" works in Node and in browsers');
