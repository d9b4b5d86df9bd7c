import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { parseSecrets, renderSecrets, type SecretRecord } from './secret-records.ts';

/** Where the secrets are kept. */
interface SecretSource {
  /** Changes whenever the content does; undefined where there is nothing. */
  stamp(): string | undefined;
  read(): string;
  /** Replaces the content whole, or throws and leaves it. */
  write(text: string): void;
}

interface SecretStoreDeps {
  readonly source: SecretSource;
  readonly clock: Clock;
  /** A changed file was taken over, or could not be. */
  readonly onReload: (error: unknown) => void;
}

/** As `/status` shows it. */
export interface SecretStoreState {
  /** One more for every change of what is stored, by a request or in the file. */
  readonly generation: number;
  /** Names the content of the file that is in effect; empty where there is no file. */
  readonly sourceGeneration: string;
  readonly lastReloadFailed: boolean;
  /** True while the file has changed and could not be read: what it held before is in effect. */
  readonly stale: boolean;
  readonly reloadSuccesses: number;
  readonly reloadFailures: number;
}

const secretsMax = 10_000;

/**
 * Secrets by key, kept in one file. The file is looked at with every use, so that a change from outside takes effect with
 * the next request; one that cannot be read leaves the secrets that were there before in effect.
 */
export class SecretStore {
  readonly #deps: SecretStoreDeps;
  #records: ReadonlyMap<string, SecretRecord> = new Map();
  #generation = 0;
  #successes = 0;
  #failures = 0;
  /** Of the content in effect, and of what was last looked at. */
  #stamp: string | undefined = undefined;
  #seen: string | undefined = undefined;
  #failed = false;

  constructor(deps: SecretStoreDeps) {
    this.#deps = deps;
    this.#refresh();
  }

  get state(): SecretStoreState {
    this.#refresh();
    return {
      generation: this.#generation,
      sourceGeneration: this.#stamp ?? '',
      lastReloadFailed: this.#failed,
      stale: this.#failed,
      reloadSuccesses: this.#successes,
      reloadFailures: this.#failures,
    };
  }

  /** All secrets, by key. */
  records(): ReadonlyMap<string, SecretRecord> {
    this.#refresh();
    return this.#records;
  }

  get(key: string): SecretRecord | undefined {
    return this.records().get(key);
  }

  /** Sets a secret, durably. Without `hosts` a stored secret keeps those that it has. */
  put(key: string, value: string, hosts?: readonly string[]): SecretRecord {
    const before = this.#writable().get(key);
    if (before === undefined && this.#records.size >= secretsMax) {
      throw new ServiceError('limit_exceeded', `there are ${secretsMax} secrets, which is the most; delete some`);
    }
    const nowMs = this.#deps.clock.nowMs();
    const record: SecretRecord = {
      key,
      value,
      hosts: hosts ?? before?.hosts,
      createdMs: before?.createdMs ?? nowMs,
      updatedMs: nowMs,
    };
    this.#replace(new Map([...this.#records, [key, record]]));
    return record;
  }

  /** Removes a secret, durably; says whether it was there. */
  delete(key: string): boolean {
    if (!this.#writable().has(key)) return false;
    this.#replace(new Map([...this.#records].filter(([each]) => each !== key)));
    return true;
  }

  /** The secrets in effect, once they are known to be those of the file: nothing that was put there by hand is overwritten. */
  #writable(): ReadonlyMap<string, SecretRecord> {
    this.#refresh();
    if (!this.#failed) return this.#records;
    throw new ServiceError('unavailable', 'the file of secrets cannot be read; repair or remove it first');
  }

  #replace(records: ReadonlyMap<string, SecretRecord>): void {
    const { source } = this.#deps;
    source.write(renderSecrets(records.values()));
    this.#records = records;
    this.#stamp = source.stamp();
    this.#seen = this.#stamp;
    this.#generation += 1;
  }

  #refresh(): void {
    let stamp: string | undefined;
    try {
      stamp = this.#deps.source.stamp();
      if (stamp === this.#seen) return;
      const records = stamp === undefined ? new Map<string, SecretRecord>() : parseSecrets(this.#deps.source.read());
      this.#records = records;
      this.#stamp = stamp;
      this.#seen = stamp;
      this.#failed = false;
      this.#successes += 1;
      this.#generation += 1;
    } catch (error) {
      // One that cannot even be looked at is tried again with the next use, but told of once.
      const isNew = !this.#failed || this.#seen !== (stamp ?? unseen);
      this.#seen = stamp ?? unseen;
      this.#failed = true;
      if (!isNew) return;
      this.#failures += 1;
      this.#deps.onReload(error);
      return;
    }
    this.#deps.onReload(undefined);
  }
}

/** In the place of the stamp of a file that has none. */
const unseen = 'unseen';
