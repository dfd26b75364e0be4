/** Provides access to a table inside a store, for tests that replace a part of the table. */
import { defined } from "../../src/base/assert.ts";
import type { LocalStore } from "../../src/storage/mod.ts";
import { StoredTable } from "../../src/storage/table/table.ts";

/** Returns a store's own object for a table, captured while the store reads from it. */
export function tableOf(store: LocalStore, tableId: number): StoredTable {
  const found: StoredTable[] = [];
  // oxlint-disable-next-line typescript/unbound-method -- it is called on its table below
  const original = StoredTable.prototype.requireAvailable;
  StoredTable.prototype.requireAvailable = function (): StoredTable {
    found.push(this);
    return original.call(this);
  };
  try {
    store.distinctValues(tableId, 1);
  } finally {
    StoredTable.prototype.requireAvailable = original;
  }
  return defined(found[0], "the store must have the table");
}
