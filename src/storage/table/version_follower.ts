/**
 * Finds versions of one table by their seqs. A statement read the versions that it replaces in the
 * order in which they lie, so the next one is looked for behind the last one first.
 *
 * Within one place the seqs of an owner ascend.
 */
import { Memtable } from "../memtable/memtable.ts";
import type { StoredTable } from "./table.ts";
import { VersionCursor } from "./version_cursor.ts";

/** Rows that are passed over before all is searched, which takes as long. */
const PASSED_MAX = 16;

export class VersionFollower {
  readonly #table: StoredTable;
  readonly #cursor = new VersionCursor();
  #isStanding = false;

  constructor(table: StoredTable) {
    this.#table = table;
  }

  /** In another turn: what it stands in may be gone. */
  leave(): void {
    this.#isStanding = false;
  }

  /** Stands on the version of an owner with exactly this seq. Valid until the next search. */
  find(owner: number, seq: number): VersionCursor | undefined {
    const cursor = this.#cursor;
    for (let passed = 0; this.#isStanding && passed < PASSED_MAX; passed += 1) {
      if (!cursor.advance()) break;
      const found = cursor.seq;
      if (found === seq) return cursor;
      if (found > seq) break;
    }
    const found = this.#table.findSeq(owner, seq);
    this.#isStanding = found !== undefined;
    if (found === undefined) return undefined;
    const { place, row } = found;
    if (place instanceof Memtable) cursor.standInMemtable(place, row);
    else cursor.standInSegment(place, row);
    return cursor;
  }
}
