import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ChildServer, type ChildServerOptions } from '../support/fault/child-server.ts';
import type { DurableShadow } from '../support/fault/durable-shadow.ts';
import { type ArmedFault, FaultControl, type FaultRule } from '../support/fault/fault-control.ts';
import type { SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { DocumentModel } from './document-model.ts';
import { type KillPlan, planKill } from './kill-plan.ts';
import { LoadClient, type LoadedTable, vectorIndex, vectorIndexConfig } from './load-client.ts';
import { ScratchTables } from './scratch-tables.ts';
import { resolveDoubts, verifyDatabase } from './verify-database.ts';

const clientCount = 4;
/** Writes that every power failure has behind it, however slow the machine is. */
export const writesBeforeFailure = 4;
/** A place that the load does not pass in this time is given up, and the server killed where it is. */
const loadMsMax = 1_500;
/** Often enough for index checkpoints, and the purges that follow them, to happen under load. */
const environment = { SUNDEW__INDEXING__CHECKPOINT_INTERVAL: '1s' };
/** The longest start after a kill that the fault matrix allows. */
const startDeadlineMs = 10_000;

/** One data directory, killed and reopened round after round beside a model. */
export class CrashRun {
  readonly history: string[] = [];
  readonly #dataDir: string;
  readonly #random: SeededRandom;
  readonly #model = new DocumentModel();
  readonly #scratch: ScratchTables;
  readonly #controlPath: string;
  #clients: LoadClient[] = [];
  #tables: LoadedTable[] = [];
  #killedWhereNamed = 0;

  constructor(directory: string, random: SeededRandom) {
    this.#dataDir = join(directory, 'data');
    this.#controlPath = join(directory, 'crash-control');
    mkdirSync(this.#dataDir, { recursive: true });
    this.#random = random;
    this.#scratch = new ScratchTables(this.#model);
  }

  get acknowledged(): number {
    return this.#clients.reduce((sum, client) => sum + client.acknowledged, 0);
  }

  get killedWhereNamed(): number {
    return this.#killedWhereNamed;
  }

  /** Load, kill, reopen, compare. */
  async round(): Promise<void> {
    if (this.#tables.length === 0) await this.#prepare();
    const plan = planKill(this.#random);
    this.history.push(`round ${this.history.length + 1}: ${JSON.stringify(plan)}`);
    if (plan.kind === 'starting') {
      const server = await ChildServer.spawn({ dataDir: this.#dataDir });
      await Promise.race([Bun.sleep(plan.afterMs), server.ended]);
      await server.kill();
    } else await this.#loadAndKill(plan);
    await this.#verify();
  }

  /**
   * Load, and the power goes `afterMs` later, or once `writesBeforeFailure` are acknowledged: what was never synced is gone.
   * Reopen and compare.
   * @param disk a fault of the disk while the load runs
   */
  async powerFailure(openShadow: (dataDir: string) => DurableShadow, afterMs: number, disk?: FaultRule): Promise<void> {
    if (this.#tables.length === 0) await this.#prepare();
    this.history.push(`power failure ${this.history.length + 1}: after ${afterMs} ms`);
    const shadow = openShadow(this.#dataDir);
    const control = new FaultControl(this.#controlPath);
    await using server = await ChildServer.start({
      dataDir: this.#dataDir,
      environment,
      control,
      shadow,
      startDeadlineMs,
    });
    if (disk) control.arm(disk);
    const stop = new AbortController();
    const load = Promise.all([...this.#clients, this.#scratch].map((client) => client.run(server.url, stop.signal)));
    const enough = this.acknowledged + writesBeforeFailure;
    const written = until(async () => this.acknowledged >= enough || stop.signal.aborted);
    await Promise.race([load, Promise.all([Bun.sleep(afterMs), written]), server.ended]);
    await server.kill();
    stop.abort();
    await Promise.all([load, written]);
    shadow.replace();
    await this.#verify();
  }

  /** The offline verification has nothing to say about the directory. */
  async checkOffline(): Promise<void> {
    const script = join(import.meta.dir, '../../src/main.ts');
    const check = Bun.spawnSync([process.execPath, script, 'check', '--data-dir', this.#dataDir], { stderr: 'pipe' });
    if (check.exitCode !== 0) throw new Error(`sundew check: ${check.stdout.toString()}${check.stderr.toString()}`);
  }

  async #prepare(): Promise<void> {
    await using server = await ChildServer.start({ dataDir: this.#dataDir, startDeadlineMs });
    const wire = new WireClient(server.url);
    for (const [name, shards] of [
      ['one', 3],
      ['two', 1],
    ] as const) {
      await wire.createTable(name, { num_shards: shards, indexes: { [vectorIndex]: vectorIndexConfig } });
      this.#model.addTable(name);
      this.#tables.push({ name, prefixes: await rangePrefixes(wire, name) });
    }
    const ids = Array.from({ length: clientCount }, (_, id) => id);
    this.#clients = ids.map((id) => new LoadClient(id, this.#random, this.#tables, this.#model));
    await server.stop();
  }

  async #loadAndKill(plan: Exclude<KillPlan, { kind: 'starting' }>): Promise<void> {
    const options: ChildServerOptions = { dataDir: this.#dataDir, environment };
    if (plan.kind === 'failpoint') options.failpoint = plan.failpoint;
    if (plan.kind === 'call') options.control = new FaultControl(this.#controlPath);
    await using server = await this.#startUnlessKilled(options);
    if (!server) return;
    let armed: ArmedFault | undefined;
    if (plan.kind === 'call' && options.control) {
      armed = options.control.arm({
        calls: [plan.call],
        path: plan.path || this.#dataDir,
        action: 'kill',
        skip: plan.skip,
      });
    }
    const stop = new AbortController();
    const load = Promise.all([...this.#clients, this.#scratch].map((client) => client.run(server.url, stop.signal)));
    const patienceMs = plan.kind === 'moment' ? plan.afterMs : plan.stopFirst ? 300 : loadMsMax;
    await Promise.race([load, Bun.sleep(patienceMs), server.ended]);
    if (plan.kind !== 'moment' && plan.stopFirst) await Promise.race([server.stop(), Bun.sleep(loadMsMax)]);
    if (server.ending && plan.kind !== 'moment') this.#killedWhereNamed += 1;
    await server.kill();
    stop.abort();
    await load;
    this.history.push(
      `  ended ${JSON.stringify(server.ending)} met ${armed?.met ?? '-'}, ${this.acknowledged} acknowledged`,
    );
  }

  /** A failpoint may lie on the way of starting. */
  async #startUnlessKilled(options: ChildServerOptions): Promise<ChildServer | undefined> {
    const server = await ChildServer.spawn(options);
    try {
      await server.ready(startDeadlineMs);
      return server;
    } catch (error) {
      if (server.ending && server.ending.signal !== null && options.failpoint) return undefined;
      await server.kill();
      throw error;
    }
  }

  async #verify(): Promise<void> {
    await using server = await ChildServer.start({ dataDir: this.#dataDir, startDeadlineMs });
    await resolveDoubts(server.url, this.#clients);
    await this.#scratch.resolve(server.url);
    const stale = this.#clients.flatMap((client) => client.staleWords());
    await verifyDatabase(server.url, this.#model, this.#tables, stale);
    // Every other time the next round starts from a killed server, not from a stopped one.
    if (this.#random.chance(0.5)) await server.stop();
  }
}

/** For every range of a table a prefix of keys that fall into it. */
export async function rangePrefixes(wire: WireClient, table: string): Promise<string[]> {
  const answer = await wire.expect(200, 'GET', `/db/v1/tables/${table}`);
  const { shards } = answer.body as { shards: Record<string, { byte_range: [string, string] }> };
  return Object.values(shards).map(({ byte_range: [start] }) =>
    start === '' ? '!' : Buffer.from(start, 'base64').toString(),
  );
}
