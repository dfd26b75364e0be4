/**
 * Compiles the expressions in index keys, both for this thread's store and for statements that
 * write rows.
 */
import { type KeyComputation, type KeyExpression, setKeyCompiler } from "../../../storage/mod.ts";
import { TEXT, valuesOf, vectorFromValues } from "../../../types/mod.ts";
import { StatementBinding } from "../../bind/binding.ts";
import { castTo } from "../../bind/expression/casts.ts";
import { bindExpression } from "../../bind/expression/expression_binder.ts";
import { parseStored } from "../../bind/expression/type_names.ts";
import type { CallDeps } from "../../functions/base/function.ts";
import { joinedTerms } from "../../functions/search/terms.ts";
import { Effort } from "../context/effort.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { checkScope } from "./table_runtime.ts";

/**
 * The context of key expressions. An immutable expression without subqueries reads nothing else
 * from its context.
 */
const CONTEXT = {
  call: {} as CallDeps,
  effort: new Effort({
    context: { checkTime: () => undefined, monotonicMs: () => 0 },
    bytesMax: Number.POSITIVE_INFINITY,
  }),
  slots: [],
} as unknown as ExecutionContext;

/** Compiles an expression over the columns that it reads, which are passed in the given order. */
export function compileKeyExpression({ reads, sql, terms, type }: KeyExpression): KeyComputation {
  const { layout, scope } = checkScope({ columns: reads, name: "" });
  const node = parseStored(sql, reads);
  const context = {
    statement: new StatementBinding([]),
    scope,
    clause: "an index",
    sink: undefined,
  };
  const bound = castTo(bindExpression(node, context), { to: type, mode: "assignment", node });
  const evaluate = compileExpression(bound, layout);
  if (terms === undefined) {
    return (columns, rowCount) => evaluate({ rowCount, columns }, CONTEXT);
  }
  return (columns, rowCount) => {
    const values = valuesOf(evaluate({ rowCount, columns }, CONTEXT));
    return vectorFromValues(
      TEXT,
      values.map((value) => (value === null ? null : joinedTerms(terms, type, value))),
    );
  };
}

// The compiler is registered here, so that every thread that loads the SQL layer can compute keys.
setKeyCompiler(compileKeyExpression);
