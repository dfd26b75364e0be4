/** Computes bounds for strings that must begin with a given prefix. */
import type { ColumnSpan } from "../../../storage/mod.ts";
import { spanOfBeginning, spanOfLike } from "../../functions/regex/like.ts";
import type { PlannedRange } from "../../plan/plan.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileScalar } from "../evaluate/scalar.ts";

/**
 * Returns the bounds of the strings that may match; undefined if none can match because the
 * pattern or prefix is NULL.
 */
export type BeginningSpan = (context: ExecutionContext) => ColumnSpan | undefined;

/**
 * Compiles the bounds implied by a pattern. Returns undefined if the pattern has no fixed prefix.
 */
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
