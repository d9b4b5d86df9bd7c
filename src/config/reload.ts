import { hashOptions, type LoadedConfig, type OptionTable } from './load.ts';
import { type Config, type OptionName, options } from './options.ts';

/** As `/status` shows it. */
export interface ConfigGeneration {
  /** 1 at the start, one more for every reload that changed something. */
  readonly generation: number;
  readonly hash: string;
  readonly lastReloadFailed: boolean;
  /** True while the file holds something that only a restart brings into effect. */
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
  #stale = false;
  readonly #load: () => LoadedConfig;
  readonly #listeners: ((config: Config) => void)[] = [];

  constructor(loaded: LoadedConfig, load: () => LoadedConfig) {
    this.#loaded = loaded;
    this.#load = load;
  }

  get config(): Config {
    return this.#loaded.config;
  }

  get state(): ConfigGeneration {
    return {
      generation: this.#generation,
      hash: this.#loaded.hash,
      lastReloadFailed: this.#lastFailed,
      stale: this.#stale,
      reloadSuccesses: this.#successes,
      reloadFailures: this.#failures,
    };
  }

  /** Called with the configuration after every reload that changed something. */
  onChange(listener: (config: Config) => void): void {
    this.#listeners.push(listener);
  }

  /** Reads all sources again. Returns the names that now differ from what runs and need a restart; throws what loading throws. */
  reload(): OptionName[] {
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
    const changed = (Object.keys(options) as OptionName[]).filter((name) => fresh.config[name] !== this.config[name]);
    const waiting = changed.filter((name) => !options[name].reloadable);
    this.#stale = waiting.length > 0;
    if (changed.length > waiting.length) {
      const kept = Object.fromEntries(waiting.map((name) => [name, this.config[name]]));
      const config = { ...fresh.config, ...kept };
      this.#loaded = { ...fresh, config, hash: hashOptions(options as unknown as OptionTable, config) };
      this.#generation += 1;
      for (const listener of this.#listeners) listener(this.config);
    }
    return waiting;
  }
}
