/**
 * Evaluates `(a, b) IN (…)` by lookup, so that the cost does not depend on the number of listed
 * rows.
 *
 * Two rows are equal if all their values are equal, and different if any pair of values differs.
 * If NULL values prevent both conclusions, the result is unknown, that is, NULL.
 */
import {
  type DataType,
  haveSameGroupKey,
  type Row,
  type Value,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { keyTextOf } from "../keys/key_text.ts";
import type { Compiling } from "./branches.ts";
import type { Evaluator } from "./expression.ts";

interface RowMembers {
  readonly rows: readonly Row[];
  /** The keys of the listed rows that contain no NULL. */
  readonly keys: ReadonlySet<string>;
  /** The listed rows that contain a NULL. */
  readonly open: readonly Row[];
  /**
   * Cached results for operands that contain NULL. Such operands have to be compared with every
   * listed row.
   */
  readonly known: Map<string, Value>;
}

/** The maximum number of cached results for operands that contain NULL. */
const KNOWN_MAX = 10_000;

/** A batch of one row without columns, over which the listed rows are evaluated. */
const SINGLE_ROW = { rowCount: 1, columns: [] };

export function compileRowIn(
  { operands, rows, type }: Extract<BoundExpression, { kind: "row in" }>,
  { compile }: Compiling,
): Evaluator {
  const types = operands.map((operand) => operand.type);
  const asked = operands.map(compile);
  const listed = rows.map((row) => row.map(compile));
  const membersOfContext = new WeakMap<ExecutionContext, RowMembers>();
  return (batch, context) => {
    const vectors = asked.map((operand) => operand(batch, context));
    let members = membersOfContext.get(context);
    if (members === undefined) {
      const values = listed.map((row) =>
        row.map((item): Value => valueAt(item(SINGLE_ROW, context), 0)),
      );
      members = rowMembersOf(values, types);
      membersOfContext.set(context, members);
    }
    const results: Value[] = Array.from({ length: batch.rowCount });
    for (let row = 0; row < batch.rowCount; row += 1) {
      const values = vectors.map((vector) => valueAt(vector, row));
      results[row] = isRowMember(values, members, types);
    }
    return vectorFromValues(type, results);
  };
}

function rowMembersOf(rows: readonly Row[], types: readonly DataType[]): RowMembers {
  const keys = new Set<string>();
  const open: Row[] = [];
  for (const row of rows) {
    if (row.includes(null)) open.push(row);
    else keys.add(keyTextOf(types, row));
  }
  return { rows, keys, open, known: new Map() };
}

/** Returns whether a row equals any listed row; NULL if that is unknown. */
function isRowMember(values: Row, members: RowMembers, types: readonly DataType[]): Value {
  const key = keyTextOf(types, values);
  const { keys, known, open, rows } = members;
  if (!values.includes(null)) {
    if (keys.has(key)) return true;
    return open.some((row) => mayEqual(row, values, types)) ? null : false;
  }
  const before = known.get(key);
  if (before !== undefined) return before;
  const answer = rows.some((row) => mayEqual(row, values, types)) ? null : false;
  if (known.size < KNOWN_MAX) known.set(key, answer);
  return answer;
}

/** Whether two rows may be equal because no pair of their values is known to differ. */
function mayEqual(left: Row, right: Row, types: readonly DataType[]): boolean {
  return types.every((type, i) => {
    const one = left[i] ?? null;
    const other = right[i] ?? null;
    if (one === null || other === null) return true;
    return haveSameGroupKey(type, one, other);
  });
}
