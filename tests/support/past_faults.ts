/**
 * Faults in reads of earlier states through SQL, each of which the simulation must find. A fault
 * replaces one property of a class while a test runs.
 */
import { defined } from "../../src/base/assert.ts";
import type { SharedTable } from "../../src/storage/mod.ts";
import { LocalStore } from "../../src/storage/mod.ts";
import { HistoryScan } from "../../src/storage/read/history_scan.ts";
import { KnownTables } from "../../src/storage/replica/table_sharing.ts";
import { StoredTable } from "../../src/storage/table/table.ts";

/** A fault, and the property that it replaces. */
interface PastFault {
  readonly fault: string;
  readonly of: object;
  readonly name: string;
  readonly injected: PropertyDescriptor;
}

/** The original `share` method, with no fault injected. */
const { share } = Object.getOwnPropertyDescriptors(KnownTables.prototype);

export const PAST_FAULTS: readonly PastFault[] = [
  {
    fault: "a state that shows a part of a commit",
    of: LocalStore.prototype,
    name: "wholeCommitsUpTo",
    injected: { value: (_table: number, _owner: number, upTo: number): number => upTo },
  },
  {
    fault: "a scan that skips history",
    of: HistoryScan.prototype,
    name: "next",
    injected: { value: () => undefined },
  },
  {
    fault: "a look-up by key that skips history",
    of: StoredTable.prototype,
    name: "historyAt",
    injected: { value: () => [] },
  },
  {
    fault: "history that is read although some of it was discarded",
    of: LocalStore.prototype,
    name: "earliestSeq",
    injected: { value: () => 0 },
  },
  {
    fault: "readers that are given only the history of their snapshot",
    of: KnownTables.prototype,
    name: "share",
    injected: {
      value(this: KnownTables, ...given: Parameters<KnownTables["share"]>): SharedTable {
        const [table, options] = given;
        const call = defined(share.value, "a method must have a value");
        return call.call(this, table, { ...options, pastSeqs: [] });
      },
    },
  },
];
