/** Provides access to a table inside a store, for tests that change one of its parts. */
import { defined } from "../../src/base/assert.ts";
import type { LocalStore } from "../../src/storage/mod.ts";
import { StoredTable } from "../../src/storage/table/table.ts";

/** Captures the table that a store reads from. */
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
