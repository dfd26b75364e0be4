/**
 * Derives row types from tables. The name of a table also names the type of its rows, whose fields
 * are the declared columns. No column can have such a type, so that no stored value depends on the
 * table.
 */
import type { DataType, RowField } from "../types/mod.ts";
import { shownColumnsOf } from "./declared_keys.ts";
import type { ColumnEntry, Routine, RoutineParameter, RoutineType, TableEntry } from "./entries.ts";

type TableWithRows = Pick<TableEntry, "columns" | "name" | "namespace" | "tableId">;

export function rowTypeOfTable(table: TableWithRows): DataType {
  const { name, namespace, tableId } = table;
  const fields = shownColumnsOf(table).map(fieldOf);
  return { kind: "row", fields, named: { typeId: tableId, namespace, name, isOfTable: true } };
}

function fieldOf({ domain, name, type }: ColumnEntry): RowField {
  return domain === undefined ? { name, type } : { name, type, domain };
}

/**
 * Returns a function whose parameters have the present columns of the tables that are their types.
 * The result of a query keeps the columns that the table had when the function was created.
 *
 * @param tableById Returns the table with an id; undefined if it was dropped.
 */
export function withPresentRows(
  routine: Routine,
  tableById: (tableId: number) => TableWithRows | undefined,
): Routine {
  const present = (type: RoutineType): RoutineType => {
    if (typeof type !== "object") return type;
    if (type.kind === "array") {
      const element = present(type.element);
      return typeof element === "object" ? { ...type, element } : type;
    }
    const named = type.kind === "row" ? type.named : undefined;
    const table = named?.isOfTable === true ? tableById(named.typeId) : undefined;
    return table === undefined ? type : rowTypeOfTable(table);
  };
  const { parameters, program, returns } = routine;
  return {
    ...routine,
    parameters: parameters.map((each) => withType(each, present(each.type))),
    ...(returns === undefined || program === undefined ? {} : { returns: present(returns) }),
  };
}

function withType(parameter: RoutineParameter, type: RoutineType): RoutineParameter {
  return { ...parameter, type };
}
