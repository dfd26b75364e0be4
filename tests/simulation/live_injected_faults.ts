/**
 * Defines faults that a test injects into the results of the store below the live engine, or into
 * the messages of a socket above it. The simulation can be trusted because it finds each of them.
 */
import { AssertionError } from "../../src/base/assert.ts";
import type { Seq } from "../../src/base/seq.ts";
import type { ChangeBatch } from "../../src/storage/mod.ts";
import type { ManualClock } from "../support/manual_clock.ts";
import { ModelStore } from "../support/model_store.ts";
import type { PlantedFault } from "../support/result_follower.ts";
import { type SimulationOptions, simulateOverModel } from "./live_worlds.ts";
import { simulateResults } from "./result_simulation.ts";
import { StreamViolation } from "./simulated_client.ts";

export const INJECTED_FAULTS = [
  /** A read after a commit misses the newest version. */
  "unread",
  /** A snapshot includes versions above its boundary seq. */
  "boundless",
  /** The engine is not notified of a commit. */
  "silent",
  /** Changes carry the new values as their old values. */
  "old_is_new",
  /** The store does not find the previous version of a row. */
  "no_before",
  /** A tombstone is treated as a row. */
  "undeleted",
  /** The seq of the previous version is lost. */
  "prev_lost",
  /** A message is lost. */
  "lost",
  /** A message arrives twice. */
  "doubled",
  /** Two messages arrive in the wrong order. */
  "swapped",
  /** A change to a materialised result arrives without its rows. */
  "result_lost",
  /** A cell of a materialised result is altered. */
  "result_altered",
  /** The end of a commit is announced before all of its rows have arrived. */
  "result_early",
  /** Deleted rows remain in a materialised result. */
  "result_undead",
] as const;

export type InjectedFault = (typeof INJECTED_FAULTS)[number];

type Injected = Pick<SimulationOptions, "store" | "tamper"> | { readonly client: PlantedFault };

async function runWith(injected: Injected, seed: number, steps: number): Promise<void> {
  if ("client" in injected) {
    await simulateResults(seed, { steps: Math.ceil(steps / 10), fault: injected.client });
  } else await simulateOverModel(seed, { steps, ...injected });
}

/**
 * The maximum number of simulated worlds to search for a fault. No fault is visible in every
 * world.
 */
const WORLDS_MAX = 100;

/**
 * Simulates worlds with an injected fault, starting from a seed. Returns how the fault was found,
 * or undefined if it was not.
 */
export async function findInjected(
  injected: InjectedFault,
  { seed: firstSeed, steps }: { seed: number; steps: number },
): Promise<string | undefined> {
  for (let seed = firstSeed; seed < firstSeed + WORLDS_MAX; seed += 1) {
    try {
      await runWith(INJECTED[injected], seed, steps);
    } catch (error) {
      // Either the oracle finds the fault, or an assertion of the engine about its input fails.
      const isFound = error instanceof StreamViolation || error instanceof AssertionError;
      if (!isFound) throw error;
      return `seed ${seed}: ${error.message}`;
    }
  }
  return undefined;
}

type Batches = (batch: ChangeBatch) => ChangeBatch;

/** A store that damages change batches on their way to the engine. */
class FaultyStore extends ModelStore {
  damage: Batches = (batch) => batch;

  override changes(...[tableId, options]: Parameters<ModelStore["changes"]>) {
    const scan = super.changes(tableId, options);
    return {
      next: () => {
        const batch = scan.next();
        return batch === undefined ? undefined : this.damage(batch);
      },
      close: () => scan.close(),
    };
  }
}

class ForgetfulStore extends ModelStore {
  override changes(...[tableId, options]: Parameters<ModelStore["changes"]>) {
    const upTo = Math.max(options.after, options.upTo - 1) as Seq;
    return super.changes(tableId, { ...options, upTo });
  }
}

class BoundlessStore extends ModelStore {
  override scan(...[tableId, options]: Parameters<ModelStore["scan"]>) {
    return super.scan(tableId, { ...options, upTo: this.visibleSeq });
  }
}

class SilentStore extends ModelStore {
  #wakeCount = 0;

  override sync(): void {
    const wake = this.onVisible;
    this.#wakeCount += 1;
    if (this.#wakeCount % 5 === 0) this.onVisible = () => {};
    super.sync();
    this.onVisible = wake;
  }
}

function damaged(damage: Batches): (clock: ManualClock) => ModelStore {
  return (clock) => {
    const store = new FaultyStore(clock);
    store.damage = damage;
    return store;
  };
}

const INJECTED: Readonly<Record<InjectedFault, Injected>> = {
  unread: { store: (clock) => new ForgetfulStore(clock) },
  boundless: { store: (clock) => new BoundlessStore(clock) },
  silent: { store: (clock) => new SilentStore(clock) },
  old_is_new: { store: damaged((batch) => ({ ...batch, oldColumns: batch.columns })) },
  no_before: { store: damaged((batch) => ({ ...batch, hasOld: new Uint8Array(batch.rowCount) })) },
  undeleted: { store: damaged((batch) => ({ ...batch, deleted: new Uint8Array(batch.rowCount) })) },
  prev_lost: { store: damaged((batch) => ({ ...batch, prevs: new Float64Array(batch.rowCount) })) },
  lost: { tamper: (messages, random) => messages.filter(() => !random.chance(0.01)) },
  doubled: {
    tamper: (messages, random) =>
      messages.flatMap((sent) => (random.chance(0.01) ? [sent, sent] : [sent])),
  },
  swapped: {
    tamper: (messages, random) => (random.chance(0.2) ? messages.toReversed() : messages),
  },
  result_lost: { client: "lost" },
  result_altered: { client: "altered" },
  result_early: { client: "early" },
  result_undead: { client: "undead" },
};
