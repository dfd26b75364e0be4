/**
 * Faults in history reads, each of which the simulation must find. A fault replaces one property
 * of a class while a test runs.
 */
import { defined } from "../../src/base/assert.ts";
import type { SharedTable } from "../../src/storage/mod.ts";
import { HistoryScan } from "../../src/storage/read/history_scan.ts";
import { KnownTables } from "../../src/storage/replica/table_sharing.ts";
import { OpenSegment } from "../../src/storage/table/open_segment.ts";
import { StoredTable } from "../../src/storage/table/table.ts";
import { VersionCursor } from "../../src/storage/table/version_cursor.ts";
import type { Row } from "../../src/types/mod.ts";

/** A fault, and the property that it replaces. */
interface HistoryFault {
  readonly fault: string;
  readonly of: object;
  readonly name: string;
  readonly injected: PropertyDescriptor;
}

/** The original `share` method, with no fault injected. */
const { share } = Object.getOwnPropertyDescriptors(KnownTables.prototype);

export const HISTORY_FAULTS: readonly HistoryFault[] = [
  {
    fault: "a replay that skips history",
    of: StoredTable.prototype,
    name: "allSegments",
    injected: {
      get(this: StoredTable) {
        return this.segments;
      },
    },
  },
  {
    fault: "a scan at an old bound that skips history",
    of: HistoryScan.prototype,
    name: "next",
    injected: { value: () => undefined },
  },
  {
    fault: "a lookup at an old bound that skips history",
    of: StoredTable.prototype,
    name: "historyAt",
    injected: { value: () => [] },
  },
  {
    fault: "a search for a key that takes a replaced version for the newest",
    of: VersionCursor.prototype,
    name: "isReplaced",
    injected: { get: () => false },
  },
  {
    fault: "a search for a key that ignores its bound",
    of: OpenSegment.prototype,
    name: "findKey",
    injected: {
      value(this: OpenSegment, owner: number, key: Row): number {
        return this.reader.findKey(owner, key);
      },
    },
  },
  {
    fault: "readers that are not given history",
    of: KnownTables.prototype,
    name: "share",
    injected: {
      value(this: KnownTables, ...given: Parameters<KnownTables["share"]>): SharedTable {
        return {
          ...defined(share.value, "a method must have a value").apply(this, given),
          history: [],
        };
      },
    },
  },
];
