/** Defines a key of ORDER BY. */
import type { Evaluator } from "../evaluate/expression.ts";
import type { SortOrder } from "../materialised/sort_order.ts";

export interface SortKey extends SortOrder {
  readonly evaluate: Evaluator;
}
