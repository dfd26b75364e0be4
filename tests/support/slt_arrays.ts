/** Formats the arrays in a result as case files do, in PostgreSQL's form. */
import type { SchemaField } from "../../src/protocol/mod.ts";
import { textOfArrayCell } from "../../src/sql/mod.ts";

export function withArrayTexts(
  rows: readonly (readonly unknown[])[],
  schema: readonly SchemaField[],
): readonly (readonly unknown[])[] {
  const elements = schema.map(({ data_type: type }) =>
    typeof type !== "string" && "Array" in type ? type.Array : undefined,
  );
  if (elements.every((element) => element === undefined)) return rows;
  return rows.map((row) =>
    row.map((cell, index) => {
      const element = elements[index];
      return element === undefined || cell === null ? cell : textOfArrayCell(cell, element);
    }),
  );
}
