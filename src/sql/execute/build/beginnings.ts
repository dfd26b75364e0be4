/** Computes bounds for strings whose prefix is fixed by a condition. */
import type { ColumnSpan } from "../../../storage/mod.ts";
import { spanOfBeginning, spanOfLike } from "../../functions/regex/like.ts";
import type { PlannedRange } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileScalar } from "../evaluate/scalar.ts";

/** Returns undefined if no string matches, because the pattern or the prefix is NULL. */
export type BeginningSpan = (context: ExecutionContext) => ColumnSpan | undefined;

/** Returns undefined for a range that no prefix bounds. */
export function compileBeginning({
  beginning,
  like,
}: Pick<PlannedRange, "beginning" | "like">): BeginningSpan | undefined {
  const value = like ?? beginning;
  if (value === undefined) return undefined;
  const spanOf = like === undefined ? spanOfBeginning : spanOfLike;
  const scalar = compileScalar(value);
  return (context) => {
    const text = scalar(context);
    return typeof text === "string" ? spanOf(text) : undefined;
  };
}
