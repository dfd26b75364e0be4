/** Prints `(name = value, …)` for WITH, SET and OPTIONS. */
import type { OptionEntry } from "../ast/ast.ts";
import { nameText } from "./print_expressions.ts";
import { expressionToSql } from "./print_queries.ts";

/** The placeholder that replaces every secret. */
export const MASK = "'***'";

/** Prints `(name = value, …)`. */
export function optionsText(options: readonly OptionEntry[]): string {
  return `(${options
    .map(({ name, value }) => {
      const text = value.type === "identifier" ? nameText(value.name) : expressionToSql(value);
      return `${nameText(name)} = ${text}`;
    })
    .join(", ")})`;
}

/** Prints ` WITH (name = value, …)`, or nothing if there are no options. */
export function withOptions(options: readonly OptionEntry[] | undefined): string {
  return options === undefined ? "" : ` WITH ${optionsText(options)}`;
}
