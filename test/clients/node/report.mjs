// What a driver tells the test: a line of JSON for each thing that was tried.
import assert from 'node:assert/strict';

/** Addresses and names, as `clients.test.ts` gives them. */
export const given = JSON.parse(process.argv[2]);

/** Says what a library version is under test. */
export function version(text) {
  console.log(JSON.stringify({ version: text }));
}

/** Tries one thing; what it throws is told and does not end the others. */
export async function works(capability, attempt) {
  try {
    await attempt();
    console.log(JSON.stringify({ capability }));
  } catch (error) {
    console.log(JSON.stringify({ capability, failure: String(error?.stack ?? error) }));
  }
}

/** What the attempt throws. */
export async function thrownBy(attempt) {
  try {
    await attempt();
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was thrown');
}

/** Waits until the server works for nobody: the one that was left has given its permit back. */
export async function freed() {
  for (;;) {
    const { taken } = await (await fetch(`${given.slow}/taken`)).json();
    if (taken === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
