/** Defines the table functions that evaluate JSON paths. */
import { JSONB, type Row, textFromJson } from "../../../types/mod.ts";
import { PATH_SIGNATURE, pathNodes } from "../jsonpath/path_functions.ts";
import { oneColumn, type TableFunction } from "./table_function.ts";

export const PATH_TABLE_FUNCTIONS: readonly TableFunction[] = ["", "_tz"].map((suffix) => ({
  name: `jsonb_path_query${suffix}`,
  forms: [
    {
      ...PATH_SIGNATURE,
      columns: oneColumn(JSONB),
      *rows(values): Generator<Row> {
        for (const node of pathNodes(values, suffix !== "")) yield [textFromJson(node)];
      },
    },
  ],
}));
