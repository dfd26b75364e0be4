/**
 * Binds hypothetical-set aggregates, which compute where a value would rank among the rows of a
 * group. If there are several sort keys, such a call takes one value per key.
 *
 *     rank(v) WITHIN GROUP (ORDER BY x)           1 + the rows that sort before v
 *     dense_rank(v) WITHIN GROUP (ORDER BY x)     1 + the different values that sort before v
 *     percent_rank(v) WITHIN GROUP (ORDER BY x)   (rank - 1) / rows, or 0 without rows
 *     cume_dist(v) WITHIN GROUP (ORDER BY x)      (1 + rows that do not sort after v) / (1 + rows)
 *
 * They are rewritten as counts before they are bound, so that grouping, filters and spilling need
 * no special code for them. The value `v` belongs to the group and not to a row. With grouping
 * sets, keys that are not in the group's set are NULL. Therefore, a value that reads columns
 * becomes a placeholder, which the grouping block replaces once it knows its groups.
 */
import { defined } from "../../../base/assert.ts";
import { counted } from "../../../base/counted.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { Expr, ExprCall, OrderByStatement, QName } from "../../parse/ast/ast.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";

/**
 * The function name of every placeholder. A placeholder is recognised by this object and not by
 * its text, so no other call can be mistaken for one.
 */
const DIRECT_ARGUMENT: QName = { name: "direct argument", _location: { start: 0, end: 0 } };

/**
 * Binds a call of a hypothetical-set aggregate, or a direct argument of one. Returns undefined for
 * any other call.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND unless the call has exactly one value for each sort
 *   key; INVALID_QUERY
 */
export function bindHypothetical(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  const [node] = call.args;
  if (call.function === DIRECT_ARGUMENT && node !== undefined) {
    return directArgument(bind(node, context));
  }
  const counts = countsOfHypothetical(call);
  return counts === undefined ? undefined : bind(counts, context);
}

function directArgument(value: BoundExpression): BoundExpression {
  return {
    kind: "call",
    type: value.type,
    name: DIRECT_ARGUMENT.name,
    args: [value],
    evaluate: ([argument = null]) => argument,
    seesNull: true,
    volatility: "immutable",
  };
}

/**
 * Returns the direct argument that a placeholder represents; undefined if the expression is not a
 * placeholder.
 */
export function directArgumentOf(expression: BoundExpression): BoundExpression | undefined {
  const isPlaceholder = expression.kind === "call" && expression.name === DIRECT_ARGUMENT.name;
  return isPlaceholder ? expression.args[0] : undefined;
}

const NAMES: ReadonlySet<string> = new Set(["rank", "dense_rank", "percent_rank", "cume_dist"]);

/**
 * Returns the counts that replace a call of a hypothetical-set aggregate, or undefined for any
 * other call.
 */
function countsOfHypothetical(call: ExprCall): Expr | undefined {
  const { args, function: called, over, withinGroup, withinGroupThen = [] } = call;
  if (withinGroup === undefined || over !== undefined || !NAMES.has(called.name)) return undefined;
  const { name } = called;
  const keys = [withinGroup, ...withinGroupThen].flatMap((sort, i): ComparedKey[] => {
    const value = args[i];
    return value === undefined ? [] : [{ sort, value: placeholderFor(value) }];
  });
  if (keys.length !== args.length || keys.length !== withinGroupThen.length + 1) {
    throw new DatabaseError(
      "FUNCTION_NOT_FOUND",
      `Cannot call ${name} with ${counted(args.length, "value")} and ` +
        `${counted(withinGroupThen.length + 1, "sort key")}: WITHIN GROUP must have exactly one ` +
        "sort key per value",
      {
        position: call._location.start,
        hint: `write ${name}(value) WITHIN GROUP (ORDER BY column)`,
      },
    );
  }
  if (call.distinct !== undefined || call.orderBy !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} with DISTINCT or ORDER BY in its argument list: it is a ` +
        "hypothetical-set aggregate",
      { position: call._location.start, hint: "write the sort order only in WITHIN GROUP" },
    );
  }
  return new Rewriting(call, keys).counts();
}

function placeholderFor(value: Expr): Expr {
  const { _location } = value;
  const readsColumns = [...partsOf([value])].some((part) => "type" in part && part.type === "ref");
  if (!readsColumns) return value;
  return { type: "call", function: DIRECT_ARGUMENT, args: [value], _location };
}

/** A sort key, and the value that is ranked by it. */
interface ComparedKey {
  readonly sort: OrderByStatement;
  readonly value: Expr;
}

class Rewriting {
  readonly #call: ExprCall;
  readonly #keys: readonly ComparedKey[];

  constructor(call: ExprCall, keys: readonly ComparedKey[]) {
    this.#call = call;
    this.#keys = keys;
  }

  counts(): Expr {
    const before = this.#rowSorts("before");
    const rowsBefore = this.#count(undefined, before);
    const rows = this.#count(undefined, undefined);
    switch (this.#call.function.name) {
      case "rank":
        return this.#plus(rowsBefore);
      case "dense_rank":
        return this.#plus(this.#distinctRows(before));
      case "percent_rank":
        return this.#coalesced(
          this.#quotient(rowsBefore, this.#called("nullif", [rows, this.#whole(0)])),
          this.#whole(0),
        );
      default: {
        const upTo = this.#count(undefined, this.#unary("NOT", this.#rowSorts("after")));
        return this.#quotient(this.#plus(upTo), this.#plus(rows));
      }
    }
  }

  /**
   * Returns a condition that tests whether a row sorts before or after the given values. It is
   * never NULL.
   */
  #rowSorts(side: "after" | "before"): Expr {
    const sorts = this.#keys.map(({ sort, value }) => {
      const before = this.#sortsBefore(sort, sort.by, value);
      const after = this.#sortsBefore(sort, value, sort.by);
      return side === "before"
        ? { wanted: before, other: after }
        : { wanted: after, other: before };
    });
    return sorts
      .map(({ wanted }) => wanted)
      .reduceRight((rest, wanted, i) => {
        const other = defined(
          sorts[i],
          "hypothetical-set aggregate: sort key has no comparison conditions",
        ).other;
        const isEqual = this.#binary("AND", this.#unary("NOT", other), rest);
        return this.#binary("OR", wanted, isEqual);
      });
  }

  /** Returns the number of distinct rows that satisfy a condition. */
  #distinctRows(before: Expr): Expr {
    const { _location } = this.#call;
    const [first, ...others] = this.#keys.map(({ sort }) => sort.by);
    const key = defined(first, "hypothetical-set aggregate: WITHIN GROUP has no sort key");
    if (others.length > 0) {
      // A row made up of NULLs is not itself NULL, so it is counted.
      const row: Expr = { type: "list", expressions: [key, ...others], _location };
      return this.#count(row, before);
    }
    return this.#binary("+", this.#count(key, before), this.#nullsBefore(key, before));
  }

  /**
   * Returns a condition that tests whether `left` sorts before `right` under a sort key. It is
   * never NULL.
   */
  #sortsBefore({ nulls, order }: OrderByStatement, left: Expr, right: Expr): Expr {
    const areNullsFirst = nulls === undefined ? order === "DESC" : nulls === "FIRST";
    const [missing, present] = areNullsFirst ? [left, right] : [right, left];
    const isByNull = this.#binary(
      "AND",
      this.#unary("IS NULL", missing),
      this.#unary("IS NOT NULL", present),
    );
    return this.#coalesced(this.#binary(order === "DESC" ? ">" : "<", left, right), isByNull);
  }

  /** Counts NULL as one distinct value if rows with NULL sort before the ranked value. */
  #nullsBefore(key: Expr, before: Expr): Expr {
    const isNull = this.#binary("AND", this.#unary("IS NULL", key), before);
    const { _location } = this.#call;
    const one: Expr = {
      type: "case",
      whens: [{ when: isNull, value: this.#whole(1), _location }],
      _location,
    };
    return this.#count(one, undefined);
  }

  /**
   * Counts the rows that satisfy a condition or, if `distinct` is given, the distinct values of
   * that expression in these rows.
   */
  #count(distinct: Expr | undefined, condition: Expr | undefined): Expr {
    const { _location, filter } = this.#call;
    const both = [filter, condition].filter((each) => each !== undefined);
    const [first, second] = both;
    return {
      type: "call",
      function: { name: "count", _location },
      args: [distinct ?? { type: "ref", name: "*", star: true, _location }],
      distinct: distinct === undefined ? undefined : "distinct",
      filter: first && second ? this.#binary("AND", first, second) : first,
      _location,
    };
  }

  #quotient(left: Expr, right: Expr): Expr {
    const { _location } = this.#call;
    const to = { name: "float8", _location };
    return this.#binary("/", { type: "cast", operand: left, to, _location }, right);
  }

  #plus(expression: Expr): Expr {
    return this.#binary("+", expression, this.#whole(1));
  }

  #coalesced(...args: readonly Expr[]): Expr {
    return this.#called("coalesce", args);
  }

  #called(name: string, args: readonly Expr[]): Expr {
    const { _location } = this.#call;
    return { type: "call", function: { name, _location }, args, _location };
  }

  #binary(op: "+" | "/" | "<" | ">" | "AND" | "OR", left: Expr, right: Expr): Expr {
    return { type: "binary", op, left, right, _location: this.#call._location };
  }

  #unary(op: "NOT" | "IS NULL" | "IS NOT NULL", operand: Expr): Expr {
    return { type: "unary", op, operand, _location: this.#call._location };
  }

  #whole(value: number): Expr {
    return { type: "integer", value, text: String(value), _location: this.#call._location };
  }
}
