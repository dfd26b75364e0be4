/**
 * Leaks on purpose: what the campaign must find to be trusted when it finds nothing.
 */
import type { Store } from "../../src/storage/mod.ts";

export const PLANTS = ["scan", "lookup", "changes"] as const;

/** The kind of read that is given another owner. */
export type Plant = (typeof PLANTS)[number];

/** Of so many reads one is planted; changes are read seldom. */
const PLANTED_EVERY: Readonly<Record<Plant, number>> = { scan: 40, lookup: 20, changes: 2 };

/** Gives some reads of a store the rows of whoever comes next. */
export function leakFrom(store: Store, plant: Plant): void {
  let calls = 0;
  const ownerFor = (tableId: number, owner: number): number => {
    calls += 1;
    const other = store.owners(tableId).find((each) => each !== owner && each !== 0);
    return owner !== 0 && calls % PLANTED_EVERY[plant] === 0 ? (other ?? owner) : owner;
  };
  const real = {
    scan: store.scan.bind(store),
    lookup: store.lookup.bind(store),
    changes: store.changes.bind(store),
  };
  const leaky: Pick<Store, Plant> = {
    scan: (id, read) => real.scan(id, { ...read, owner: ownerFor(id, read.owner) }),
    lookup: (id, read) => real.lookup(id, { ...read, owner: ownerFor(id, read.owner) }),
    changes: (id, read) => real.changes(id, { ...read, owner: ownerFor(id, read.owner) }),
  };
  Object.defineProperty(store, plant, { value: leaky[plant] });
}
