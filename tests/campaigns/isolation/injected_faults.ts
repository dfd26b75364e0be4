/**
 * Injects leaks that the campaign must find. Otherwise, it could not be trusted when it finds
 * nothing.
 */
import type { Store } from "../../../src/storage/mod.ts";

const READS = ["scan", "lookup", "changes"] as const;

/** A kind of read that returns another owner's rows. */
type LeakyRead = (typeof READS)[number];

/**
 * An injected fault: a leaky read, a policy or view that shows more than the campaign knows, or
 * the loss of policies when rows expire.
 */
export type InjectedFault = LeakyRead | "policy" | "view" | "expiry";

export const INJECTED_FAULTS: readonly InjectedFault[] = [...READS, "policy", "view", "expiry"];

/** The average number of reads per leak. It is low for changes, because they are rarely read. */
const INJECTED_EVERY: Readonly<Record<LeakyRead, number>> = {
  scan: 40,
  lookup: 20,
  changes: 2,
};

function isRead(injected: InjectedFault): injected is LeakyRead {
  return READS.some((each) => each === injected);
}

/** Makes some of a store's reads return another owner's rows. */
export function leakFrom(store: Store, injected: InjectedFault): void {
  if (!isRead(injected)) return;
  let calls = 0;
  const ownerFor = (tableId: number, owner: number): number => {
    calls += 1;
    const other = store.owners(tableId).find((each) => each !== owner && each !== 0);
    return owner !== 0 && calls % INJECTED_EVERY[injected] === 0 ? (other ?? owner) : owner;
  };
  const real = {
    scan: store.scan.bind(store),
    lookup: store.lookup.bind(store),
    changes: store.changes.bind(store),
  };
  const leaky: Pick<Store, LeakyRead> = {
    scan: (id, read) => real.scan(id, { ...read, owner: ownerFor(id, read.owner) }),
    lookup: (id, read) => real.lookup(id, { ...read, owner: ownerFor(id, read.owner) }),
    changes: (id, read) => real.changes(id, { ...read, owner: ownerFor(id, read.owner) }),
  };
  Object.defineProperty(store, injected, { value: leaky[injected] });
}
