/**
 * Provides stores for simulations of the live engine: the model store, which is a literal
 * implementation of the store's definition, and the real store on a simulated disk, which flushes,
 * merges and discards.
 */
import { silentLog } from "../../src/base/log.ts";
import { LocalStore } from "../../src/storage/mod.ts";
import { MESSAGES, messagesTable } from "../support/live_fixture.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { ModelStore } from "../support/model_store.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { SMALL_MERGES } from "../support/store_fixture.ts";
import {
  nextTurn,
  type SimulatedStore,
  type SimulationReport,
  simulateLive,
} from "./live_simulation.ts";
import type { Message } from "./simulated_client.ts";

/** The maximum number of ticks. Any store operation needs far fewer. */
const TURNS_MAX = 20_000;

/** The minimum retention of history in milliseconds, whatever the table specifies. */
const HISTORY_MS = 3_600_000;

export interface SimulationOptions {
  readonly steps: number;
  /**
   * The time to live of the rows, which makes the table a STREAM table; absent for other tables.
   */
  readonly ttlMs?: number;
  readonly store?: (clock: ManualClock) => ModelStore;
  readonly tamper?: (messages: Message[], random: SeededRandom) => Message[];
}

/** Runs one simulation on the model store. */
export function simulateOverModel(
  seed: number,
  { steps, store: storeOf, tamper, ttlMs }: SimulationOptions,
): Promise<SimulationReport> {
  const clock = new ManualClock();
  const store = storeOf?.(clock) ?? new ModelStore(clock);
  store.defineTable({ ...messagesTable(), ttlMs });
  return simulateLive({
    random: new SeededRandom(seed),
    clock,
    steps,
    ttlMs,
    world: {
      store,
      sync: () => Promise.resolve(store.sync()),
      disturb: () => Promise.resolve(),
      discard: (owner, upTo) => Promise.resolve(store.discard(MESSAGES, owner, upTo)),
    },
    ...(tamper === undefined ? {} : { tamper }),
  });
}

/** Runs one simulation on the real store. */
export async function simulateOverLocalStore(
  seed: number,
  { steps, ttlMs }: Pick<SimulationOptions, "steps" | "ttlMs">,
): Promise<SimulationReport> {
  const clock = new ManualClock();
  const random = new SeededRandom(seed);
  const world = await LocalWorld.open(clock, random, { ttlMs });
  const report = await simulateLive({ random, clock, world, steps, ttlMs });
  await world.close();
  return report;
}

/**
 * The real store. Its commits become visible when the disk is allowed to sync, and background work
 * pauses in between, as on a slow disk.
 */
export class LocalWorld implements SimulatedStore {
  readonly store: LocalStore;
  readonly #disk: SimulatedDisk;
  readonly #clock: ManualClock;

  private constructor(store: LocalStore, disk: SimulatedDisk, clock: ManualClock) {
    this.store = store;
    this.#disk = disk;
    this.#clock = clock;
  }

  static async open(
    clock: ManualClock,
    random: SeededRandom,
    { ttlMs }: { ttlMs?: number | undefined } = {},
  ): Promise<LocalWorld> {
    const disk = new SimulatedDisk();
    const store = await LocalStore.open({
      disk,
      dataPath: "/data",
      clock,
      random,
      log: silentLog,
      manifest: new MemoryManifest(),
      definitions: [{ ...messagesTable(), historyMs: HISTORY_MS, ttlMs }],
      options: {
        nodeId: 0,
        nodeBits: 0,
        durability: "sync",
        walSegmentBytes: 1 << 20,
        walMaxBytes: 1 << 22,
        rowBytesMax: 1 << 16,
        minFreeBytes: 0,
        ballastBytes: 0,
        mergeBounds: SMALL_MERGES,
      },
    });
    disk.holdsSyncs = true;
    return new LocalWorld(store, disk, clock);
  }

  sync(): Promise<void> {
    return this.#free("a sync", this.store.durable(this.store.appliedSeq));
  }

  disturb(random: SeededRandom): Promise<void> {
    if (random.chance(0.2)) return this.#free("a merge", this.store.compact(MESSAGES));
    return this.flush();
  }

  flush(): Promise<void> {
    return this.#free("a flush", this.store.flush(MESSAGES));
  }

  /**
   * Makes all versions that were replaced before the last call old enough to be discarded, for all
   * owners.
   */
  discard(): Promise<void> {
    this.#clock.advance(HISTORY_MS / 2 + 1);
    return this.#free("a merge", this.store.compact(MESSAGES));
  }

  /** Closes the store, even if a merge is waiting for the disk. */
  close(): Promise<void> {
    return this.#free("closing the store", this.store.close());
  }

  /** Lets the disk sync until an operation has finished. Throws if it never finishes. */
  async #free(what: string, work: Promise<unknown>): Promise<void> {
    const progress = { isSettled: false };
    const settled = work.finally(() => {
      progress.isSettled = true;
    });
    // The result is examined later. Until then, a rejection must not count as unhandled.
    settled.catch(() => undefined);
    this.#disk.holdsSyncs = false;
    this.#disk.releaseSyncs();
    for (let count = 0; !progress.isSettled; count += 1) {
      if (count === TURNS_MAX) throw new Error(`Cannot continue: ${what} does not end`);
      await nextTurn();
    }
    this.#disk.holdsSyncs = true;
    await settled;
  }
}
