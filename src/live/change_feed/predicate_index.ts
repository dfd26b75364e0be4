/**
 * Finds the groups that a change may concern. A group with a condition `column = constant` is
 * concerned if the old or the new version meets the condition; a group without such a condition is
 * concerned by every change. If ten thousand subscriptions each follow one room, a change is
 * tested only against the groups that follow its room.
 *
 * Invariant: a group that would match a version, old or new, is always among its candidates.
 */
import { assert } from "../../base/assert.ts";
import type { LiveEquality } from "../../sql/mod.ts";
import type { ChangeBatch } from "../../storage/mod.ts";
import { type Value, valueAt } from "../../types/mod.ts";
import { takeChanges } from "../program/live_program.ts";

const NEW = 1;
const OLD = 2;

/**
 * The rows of a batch that may concern a group, and which versions of each row meet its condition.
 */
export class DueRows {
  /** The indexes of the matching rows, ascending. */
  readonly rows: number[] = [];
  /** Which versions of each row meet the condition: NEW, OLD or both. */
  readonly #versions: number[] = [];
  readonly #batch: ChangeBatch;
  /** Whether any row has a version that does not meet the condition. */
  #isPartial = false;

  constructor(batch: ChangeBatch) {
    this.#batch = batch;
  }

  add(row: number, versions: number): void {
    this.rows.push(row);
    this.#versions.push(versions);
    if (versions !== versionsAt(this.#batch, row)) this.#isPartial = true;
  }

  /** Whether this selection covers the entire batch, with all versions of its rows. */
  get areAll(): boolean {
    return this.rows.length === this.#batch.rowCount && !this.#isPartial;
  }

  /**
   * Copies the selected rows from index `start` onwards. The copy marks each version that does not
   * meet the condition as absent, so that no expression is evaluated for it.
   */
  taken(start: number): ChangeBatch {
    const rows = Uint32Array.from(start === 0 ? this.rows : this.rows.slice(start));
    const batch = takeChanges(this.#batch, { rows, count: rows.length });
    for (let i = 0; this.#isPartial && i < rows.length; i += 1) {
      const versions = this.#versions[start + i] ?? 0;
      if ((versions & NEW) === 0) batch.deleted[i] = 1;
      if ((versions & OLD) === 0) batch.hasOld[i] = 0;
    }
    return batch;
  }
}

export class PredicateIndex<Group extends { readonly equality: LiveEquality | undefined }> {
  readonly #always = new Set<Group>();
  /**
   * The groups, keyed by column and then by value. The map is created when the first condition is
   * added, because most users follow all of their own rows, without a condition.
   */
  #byColumn: Map<number, Map<Value, Set<Group>>> | undefined;

  add(group: Group): void {
    const { equality } = group;
    if (equality === undefined) {
      this.#always.add(group);
      return;
    }
    const { columnId, value } = equality;
    this.#byColumn ??= new Map();
    let byValue = this.#byColumn.get(columnId);
    if (byValue === undefined) this.#byColumn.set(columnId, (byValue = new Map()));
    const groups = byValue.get(value);
    if (groups === undefined) byValue.set(value, new Set([group]));
    else groups.add(group);
  }

  remove(group: Group): void {
    const { equality } = group;
    if (equality === undefined) {
      this.#always.delete(group);
      return;
    }
    const { columnId, value } = equality;
    const byColumn = this.#byColumn;
    const byValue = byColumn?.get(columnId);
    const groups = byValue?.get(value);
    assert(
      byColumn !== undefined && byValue !== undefined,
      "predicate index: the column of the removed group is not indexed",
    );
    assert(groups !== undefined, "predicate index: the value of the removed group is not indexed");
    groups.delete(group);
    if (groups.size === 0) byValue.delete(value);
    if (byValue.size === 0) byColumn.delete(columnId);
    if (byColumn.size === 0) this.#byColumn = undefined;
  }

  /** The groups that every change may concern. The index returns its own set, not a copy. */
  get always(): ReadonlySet<Group> {
    return this.#always;
  }

  /** Whether the index contains any group with a condition. */
  get hasConditions(): boolean {
    return this.#byColumn !== undefined;
  }

  /** Returns the number of groups with the given condition. */
  countOf(equality: LiveEquality | undefined): number {
    if (equality === undefined) return 0;
    return this.#byColumn?.get(equality.columnId)?.get(equality.value)?.size ?? 0;
  }

  /**
   * Finds the groups with conditions that a batch may concern, each with the rows that may concern
   * it.
   *
   * @param columnIds The columns of the batch, including every indexed column.
   */
  candidates(batch: ChangeBatch, columnIds: readonly number[]): Map<Group, DueRows> {
    const found = new Map<Group, DueRows>();
    const add = (groups: ReadonlySet<Group> | undefined, row: number, versions: number): void => {
      for (const group of groups ?? []) {
        let due = found.get(group);
        if (due === undefined) found.set(group, (due = new DueRows(batch)));
        due.add(row, versions);
      }
    };
    for (const [columnId, byValue] of this.#byColumn ?? []) {
      const index = columnIds.indexOf(columnId);
      const newValues = batch.columns[index];
      const oldValues = batch.oldColumns[index];
      assert(
        newValues !== undefined && oldValues !== undefined,
        "predicate index: indexed column is missing from the change batch",
      );
      for (let row = 0; row < batch.rowCount; row += 1) {
        const versions = versionsAt(batch, row);
        const after = (versions & NEW) === 0 ? null : valueAt(newValues, row);
        const before = (versions & OLD) === 0 ? null : valueAt(oldValues, row);
        // NULL meets no group's condition, because NULL equals no value.
        if (after === before) {
          add(byValue.get(after), row, NEW | OLD);
        } else {
          add(byValue.get(after), row, NEW);
          add(byValue.get(before), row, OLD);
        }
      }
    }
    return found;
  }
}

/**
 * Returns which versions a row of a batch has. The values retained by a tombstone do not count as
 * a version.
 */
function versionsAt({ deleted, hasOld }: ChangeBatch, row: number): number {
  return (deleted[row] === 1 ? 0 : NEW) | (hasOld[row] === 1 ? OLD : 0);
}
