/**
 * Generates random table function calls in FROM, over constants or over the rows of the preceding
 * items.
 */
import { formOf, type Scope } from "./expressions.ts";
import { type Node, node } from "./tree.ts";
import type { Column, Sort } from "./values.ts";

interface CallForm {
  readonly form: string;
  readonly sorts: readonly Sort[];
  /** The column definitions after the alias of the call; absent if the alias lists only names. */
  readonly columns?: string;
}

/** The forms of table function calls. `$sort` represents an operand of that sort. */
const FORMS: readonly CallForm[] = [
  { form: "generate_series(1, 4)", sorts: ["int"] },
  { form: "generate_series(3, -3, -2)", sorts: ["int"] },
  { form: "generate_series(-1, ($int % 5))", sorts: ["int"] },
  { form: "generate_series(0.5, 2.25, 0.25)", sorts: ["decimal"] },
  {
    form: "generate_series(TIMESTAMP '2024-02-28', TIMESTAMP '2024-03-02', INTERVAL '20 hours')",
    sorts: ["timestamp"],
  },
  { form: "generate_series($timestamp, $timestamp, INTERVAL '30 years')", sorts: ["timestamp"] },
  { form: "unnest(ARRAY[$int, $int, NULL])", sorts: ["int"] },
  { form: "unnest(ARRAY[$text, $text])", sorts: ["text"] },
  { form: "unnest(ARRAY[$text, 'b'], ARRAY[$int, 2, 3])", sorts: ["text", "int"] },
  { form: "unnest(ARRAY[$date, $date]) WITH ORDINALITY", sorts: ["date", "int"] },
  { form: "unnest(string_to_array($text, 'a'))", sorts: ["text"] },
  { form: "generate_subscripts(ARRAY[$int, 7, 8], 1)", sorts: ["int"] },
  { form: "string_to_table($text, 'b')", sorts: ["text"] },
  { form: "string_to_table('a,,b', ',') WITH ORDINALITY", sorts: ["text", "int"] },
  { form: "regexp_split_to_table($text, '[a0]')", sorts: ["text"] },
  { form: "jsonb_array_elements('[1, {\"a\": 2}, null]'::jsonb)", sorts: ["jsonb"] },
  {
    form: "jsonb_array_elements(CASE WHEN jsonb_typeof($1jsonb) = 'array' THEN $1jsonb END)",
    sorts: ["jsonb"],
  },
  { form: "jsonb_array_elements_text('[1, \"x\", null, [2]]'::jsonb)", sorts: ["text"] },
  { form: "json_array_elements_text('[true, \"a\"]'::json)", sorts: ["text"] },
  { form: 'jsonb_each(\'{"a": 1, "b": null}\'::jsonb)', sorts: ["text", "jsonb"] },
  { form: 'jsonb_each_text(\'{"a": 1, "b": [null]}\'::jsonb)', sorts: ["text", "text"] },
  { form: 'jsonb_object_keys(\'{"b": 1, "a": {}}\'::jsonb)', sorts: ["text"] },
  {
    form: 'jsonb_to_recordset(\'[{"v1": 1, "v2": "x"}, {"v2": 2}, {}]\'::jsonb)',
    sorts: ["int", "text"],
    columns: "v1 int, v2 text",
  },
];

/**
 * Returns a table function call as an item of FROM.
 *
 * @param before The columns of the items that the call may read; empty if the call comes first.
 */
export function tableCallOf(
  before: Scope,
  alias: string,
): { readonly item: Node; readonly columns: readonly Column[] } {
  const { columns, form, sorts } = before.chance.pick(FORMS);
  const names = sorts.map((_, i) => `v${i + 1}`);
  const call = formOf("text", form, 1, before);
  return {
    item: node("item", ...call.pieces, ` AS ${alias}(${columns ?? names.join(", ")})`),
    columns: sorts.map((sort, i) => ({ name: `${alias}.v${i + 1}`, sort })),
  };
}
