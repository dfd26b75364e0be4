/**
 * Which groups a change can concern: those whose `column = constant` it meets before or after, and
 * those without such a condition. With ten thousand subscriptions to one room each, a change is
 * tested against the groups of its room.
 *
 * Invariant: a group that would match a version, old or new, is always among its candidates.
 */
import { assert } from "../base/assert.ts";
import type { ChangeBatch } from "../storage/mod.ts";
import { type Value, valueAt } from "../types/mod.ts";

/** A condition that every match meets. */
export interface Equality {
  readonly columnId: number;
  readonly value: string | number;
}

export class PredicateIndex<Group extends { readonly equality: Equality | undefined }> {
  readonly #always = new Set<Group>();
  /** Made when a group has a condition: a user's own rows are mostly followed without one. */
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
    assert(byColumn !== undefined && byValue !== undefined, "an indexed group has its column");
    assert(groups !== undefined, "an indexed group is under its value");
    groups.delete(group);
    if (groups.size === 0) byValue.delete(value);
    if (byValue.size === 0) byColumn.delete(columnId);
    if (byColumn.size === 0) this.#byColumn = undefined;
  }

  /** Groups that every change must be tested against. Aliases the index. */
  get always(): ReadonlySet<Group> {
    return this.#always;
  }

  /** Whether any group is found by a value. */
  get hasConditions(): boolean {
    return this.#byColumn !== undefined;
  }

  /** How many groups are under a condition. */
  countOf(equality: Equality | undefined): number {
    if (equality === undefined) return 0;
    return this.#byColumn?.get(equality.columnId)?.get(equality.value)?.size ?? 0;
  }

  /**
   * The other groups that rows of a batch can concern, each with those rows, ascending.
   *
   * @param columnIds What the batch holds; every indexed column is among them.
   */
  candidates(batch: ChangeBatch, columnIds: readonly number[]): Map<Group, number[]> {
    const found = new Map<Group, number[]>();
    for (const [columnId, byValue] of this.#byColumn ?? []) {
      const index = columnIds.indexOf(columnId);
      const newValues = batch.columns[index];
      const oldValues = batch.oldColumns[index];
      assert(newValues !== undefined && oldValues !== undefined, "an indexed column is read");
      for (let row = 0; row < batch.rowCount; row += 1) {
        // A tombstone keeps the last values, so its old side alone decides.
        const after = batch.deleted[row] === 1 ? null : valueAt(newValues, row);
        const before = batch.hasOld[row] === 1 ? valueAt(oldValues, row) : null;
        if (after !== null) addRow(found, byValue.get(after), row);
        if (before !== null && before !== after) addRow(found, byValue.get(before), row);
      }
    }
    return found;
  }
}

function addRow<Group>(
  found: Map<Group, number[]>,
  groups: ReadonlySet<Group> | undefined,
  row: number,
): void {
  if (groups === undefined) return;
  for (const group of groups) {
    const rows = found.get(group);
    if (rows === undefined) found.set(group, [row]);
    else rows.push(row);
  }
}
