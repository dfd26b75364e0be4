/**
 * Defines how the catalog database stores table definitions: as JSON, with values in the form
 * defined in `records.ts`. When a table is read, references to user-defined types are replaced by
 * the current definitions of these types.
 */
import { jsonFromValue, type ValueJson, valueFromJson } from "../types/mod.ts";
import type { DefinedTypes } from "./defined_types.ts";
import type { IndexEntry, TableEntry } from "./entries.ts";

/** A definition of a table, and the seqs between which it was valid. */
export interface DefinitionRecord {
  readonly definitionId: number;
  /** The first seq at which the table had this definition. */
  readonly fromSeq: number;
  /**
   * The seq at which the definition was superseded (exclusive); absent for the current definition.
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
