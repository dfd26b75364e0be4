/**
 * Detects an ALTER TABLE between two steps of a scan. If it dropped a column that the scan reads,
 * or changed its stored form, the scan ends with an error.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { TableDefinition } from "../contract/table_definition.ts";
import { formOf } from "../memtable/convert.ts";
import type { StoredTable } from "../table/table.ts";

export class DefinitionWatch {
  readonly #table: StoredTable;
  readonly #columnIds: readonly number[];
  #definition: TableDefinition;

  constructor(table: StoredTable, columnIds: readonly number[]) {
    this.#table = table;
    this.#columnIds = columnIds;
    this.#definition = table.definition;
  }

  /**
   * Checks that no column that the scan reads has been dropped or altered.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if such a column has been dropped or altered.
   */
  check(): void {
    if (this.#table.definition !== this.#definition) this.#follow();
  }

  #follow(): void {
    const before = this.#definition;
    this.#definition = this.#table.definition;
    for (const columnId of this.#columnIds) {
      const then = before.columns.find((column) => column.columnId === columnId);
      if (then === undefined) continue;
      const now = this.#table.column(columnId);
      if (now !== undefined && formOf(now.type) === formOf(then.type)) continue;
      throw new DatabaseError(
        "SERIALIZATION_FAILURE",
        "Cannot continue reading the table: one of the columns was altered or dropped in the " +
          "meantime",
        { hint: "run the statement again" },
      );
    }
  }
}
