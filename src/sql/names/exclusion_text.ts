/**
 * Writes an EXCLUDE constraint of the catalog as SQL, for descriptions and for copies of its
 * table.
 */
import { type IndexEntry, indexPartsOf, type TableEntry } from "../../catalog/mod.ts";
import { nameText } from "../parse/print/print_expressions.ts";

export function exclusionText(
  table: Pick<TableEntry, "columns">,
  index: Pick<IndexEntry, "columnIds" | "expressions" | "where">,
): string {
  const parts = indexPartsOf(table, index).map(({ isExpression, name }) =>
    isExpression ? `(${name})` : nameText(name),
  );
  const list = parts.map((part, at) => `${part} WITH ${at < parts.length - 1 ? "=" : "&&"}`);
  const condition = index.where === undefined ? "" : ` WHERE (${index.where.sql})`;
  return `EXCLUDE USING gist (${list.join(", ")})${condition}`;
}
