/**
 * The form in which the catalog database stores the definitions of a table: as JSON, with values in
 * the form of `records.ts`. Names of defined types are replaced by their current definitions when a
 * table is read.
 */
import type { DefinedTypes } from "./defined_types.ts";
import type { IndexEntry, TableEntry } from "./entries.ts";
import { jsonFromValue, type ValueJson, valueFromJson } from "./records.ts";

/** One definition of a table, with the seqs between which it was in force. */
export interface DefinitionRecord {
  readonly definitionId: number;
  /** The first seq at which the definition was in force. */
  readonly fromSeq: number;
  /**
   * The seq at which the definition ended to be in force (exclusive); absent for the current
   * definition.
   */
  readonly toSeq?: number;
  readonly table: TableJson;
}

interface TableJson extends Omit<TableEntry, "columns"> {
  readonly columns: readonly (Omit<TableEntry["columns"][number], "missing"> & {
    readonly missing: ValueJson;
  })[];
}

export function jsonFromTable(entry: TableEntry): TableJson {
  return {
    ...entry,
    columns: entry.columns.map((column) => ({
      ...column,
      missing: jsonFromValue(column.missing),
    })),
  };
}

export function tableFromJson(json: TableJson, types: DefinedTypes): TableEntry {
  return {
    ...json,
    columns: json.columns.map((column) => ({
      ...types.currentColumn(column),
      missing: valueFromJson(column.missing),
    })),
    ...(json.indexes === undefined
      ? {}
      : { indexes: json.indexes.map((index) => withCurrentTypes(index, types)) }),
  };
}

function withCurrentTypes(index: IndexEntry, types: DefinedTypes): IndexEntry {
  if (index.expressions === undefined) return index;
  const expressions = index.expressions.map((each) => ({
    ...each,
    type: types.current(each.type),
  }));
  return { ...index, expressions };
}
