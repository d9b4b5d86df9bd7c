throw new Error('the embedded database needs Bun 1.4.5 or newer; "sundew/client" works in Node and in browsers');
