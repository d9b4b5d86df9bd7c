import { configOfValues, hashOptions, type LoadedConfig } from './load.ts';
import type { Config } from './options.ts';

/** As `/status` shows it. */
export interface ConfigGeneration {
  /** 1 at the start, one more for every reload that changed something. */
  readonly generation: number;
  readonly hash: string;
  readonly lastReloadFailed: boolean;
  /** True while something else runs than the file says: it could not be read, or needs a restart. */
  readonly stale: boolean;
  readonly reloadSuccesses: number;
  readonly reloadFailures: number;
}

/**
 * The configuration in effect. A reload takes over the options marked reloadable; the others keep their value until a
 * restart. A reload that fails keeps everything as it was.
 */
export class RunningConfig {
  #loaded: LoadedConfig;
  #generation = 1;
  #successes = 0;
  #failures = 0;
  #lastFailed = false;
  #needsRestart = false;
  #warnings: readonly string[];
  readonly #load: () => LoadedConfig;
  readonly #listeners: ((config: Config) => void)[] = [];

  constructor(loaded: LoadedConfig, load: () => LoadedConfig) {
    this.#loaded = loaded;
    this.#warnings = loaded.warnings;
    this.#load = load;
  }

  get config(): Config {
    return this.#loaded.config;
  }

  /** Variables of the environment that credentials may refer to. */
  get variables(): ReadonlyMap<string, string> {
    return this.#loaded.variables;
  }

  /** Those of the last reading of the file. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  get state(): ConfigGeneration {
    return {
      generation: this.#generation,
      hash: this.#loaded.hash,
      lastReloadFailed: this.#lastFailed,
      stale: this.#lastFailed || this.#needsRestart,
      reloadSuccesses: this.#successes,
      reloadFailures: this.#failures,
    };
  }

  /** Called with the configuration after every reload that changed something. */
  onChange(listener: (config: Config) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Reads all sources again. Returns the keys whose values now differ from what
   * runs and need a restart; throws what loading throws.
   */
  reload(): string[] {
    let fresh: LoadedConfig;
    try {
      fresh = this.#load();
    } catch (error) {
      this.#failures += 1;
      this.#lastFailed = true;
      throw error;
    }
    this.#successes += 1;
    this.#lastFailed = false;
    this.#warnings = fresh.warnings;
    const before = this.#loaded.values;
    const names = new Set([...Object.keys(before), ...Object.keys(fresh.values)]);
    const changed = [...names].filter((name) => !Bun.deepEquals(fresh.values[name], before[name]));
    const waiting = changed.filter((name) => Object.hasOwn(fresh.table, name) && !fresh.table[name]?.reloadable);
    this.#needsRestart = waiting.length > 0;
    if (changed.length > waiting.length) {
      const kept = Object.fromEntries(waiting.map((name) => [name, before[name]]));
      const values = { ...fresh.values, ...kept };
      this.#loaded = {
        ...fresh,
        values,
        config: configOfValues(values),
        hash: hashOptions(fresh.table, values),
        variables: this.#loaded.variables,
      };
      this.#generation += 1;
      for (const listener of this.#listeners) listener(this.config);
    }
    return waiting.map((name) => fresh.table[name]?.key ?? name);
  }
}
