/**
 * Tests the rows that a change writes against the policies of the table before anything is
 * written. A row that no policy permits makes the statement fail.
 *
 * These tests precede every check that reads other rows (unique keys, foreign keys), so that a
 * refused row reveals nothing about other rows.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { ForeignKeyEntry, TableEntry } from "../../../catalog/mod.ts";
import { type Batch, type Row, valueAt } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import type { BoundGuard, ParentTest, RowTest } from "../../bind/change/row_guard.ts";
import { hasSubquery } from "../../bind/walk.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { type BatchLayout, layoutOf } from "../evaluate/layout.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { columnsFromRows } from "../operators/filter.ts";
import { type Evaluation, type EvaluationPlace, evaluated, whenThere } from "./evaluation.ts";
import { placeOf, referencedKeyOf, valuesIn } from "./referenced_key.ts";
import { noParent, refersAnew } from "./references.ts";
import type { RowChange } from "./row_changes.ts";

/** Tests the rows of a statement against policies. */
export interface RowGuard {
  readonly evaluations: readonly Evaluation[];
  readonly holdsQuery: boolean;
  /** Tests the rows that an INSERT proposes, whether or not they turn out to be new. */
  requireProposed(rows: readonly Row[], place: EvaluationPlace): void | Promise<void>;
  /** Tests stored rows before the values that would replace them are computed. */
  requireReplaceable(rows: readonly Row[], place: EvaluationPlace): void | Promise<void>;
  /** Tests changes before they are written. */
  require(changes: readonly RowChange[], place: EvaluationPlace): void | Promise<void>;
}

/** A compiled policy test. It throws an error if one of the given rows fails the test. */
interface CompiledTest {
  readonly evaluation: Evaluation;
  readonly rowsOf: (changes: readonly RowChange[]) => readonly Row[];
  readonly failure: (row: Row, context: ExecutionContext) => DatabaseError;
}

export function compileGuard(
  guard: BoundGuard | undefined,
  runtime: TableRuntime,
): RowGuard | undefined {
  if (guard === undefined) return undefined;
  const compiler = new GuardCompiler(guard);
  const inserted = guard.inserted.map((test) => compiler.test(test, "new", rowsOf("insert")));
  const replaced = guard.replaced.map((test) => compiler.test(test, "stored", replacedRows));
  const others = [
    ...guard.updated.map((test) => compiler.test(test, "new", rowsOf("update"))),
    ...guard.removed.map((test) => compiler.test(test, "stored", rowsOf("delete"))),
    ...guard.parents.map((parent) => compiler.parent(parent)),
  ];
  const proposed = inserted.filter((_, index) => guard.inserted[index]?.isProposed === true);
  const types = [...runtime.types];
  const run = (
    { evaluation, failure }: CompiledTest,
    rows: readonly Row[],
    place: EvaluationPlace,
  ): void | Promise<void> => {
    if (rows.length === 0) return;
    const given: Batch = { rowCount: rows.length, columns: columnsFromRows(rows, types) };
    return whenThere(evaluated(evaluation, given, place), ({ columns: [truth] }) => {
      for (const [index, row] of rows.entries()) {
        if (truth === undefined || valueAt(truth, index) !== true) {
          throw failure(row, place.context);
        }
      }
    });
  };
  const runAll = (
    tests: readonly CompiledTest[],
    rowsFor: (test: CompiledTest) => readonly Row[],
    place: EvaluationPlace,
  ): void | Promise<void> => {
    let done: void | Promise<void> = undefined;
    for (const test of tests) done = whenThere(done, () => run(test, rowsFor(test), place));
    return done;
  };
  const evaluations = [...inserted, ...replaced, ...others].map(({ evaluation }) => evaluation);
  return {
    evaluations,
    holdsQuery: evaluations.some(({ holdsQuery }) => holdsQuery),
    requireProposed: (rows, place) => runAll(proposed, () => rows, place),
    requireReplaceable: (rows, place) => runAll(replaced, () => rows, place),
    require: (changes, place) =>
      runAll([...replaced, ...inserted, ...others], ({ rowsOf: of }) => of(changes), place),
  };
}

class GuardCompiler {
  readonly #guard: BoundGuard;
  readonly #layout: BatchLayout;
  #count = 0;

  constructor(guard: BoundGuard) {
    this.#guard = guard;
    this.#layout = layoutOf(guard.columns);
  }

  test(test: RowTest, tested: "new" | "stored", rows: CompiledTest["rowsOf"]): CompiledTest {
    const failure = (): DatabaseError => refused(this.#guard.table, test, tested);
    return { evaluation: this.#evaluation(test.condition), rowsOf: rows, failure };
  }

  parent({ condition, key, parent }: ParentTest): CompiledTest {
    const { table } = this.#guard;
    return {
      evaluation: this.#evaluation(condition),
      rowsOf: (changes) => referring(table, key, changes),
      failure: (row, context) => {
        const referenced = referencedKeyOf(key, parent);
        const values = placeOf(key, table, referenced).positions.map((at) => row[at] ?? null);
        return noParent(key, { parent, referenced, table, values, context });
      },
    };
  }

  #evaluation(condition: BoundExpression): Evaluation {
    const evaluate = compileExpression(condition, this.#layout);
    this.#count += 1;
    return {
      name: `guard ${this.#count}`,
      holdsQuery: hasSubquery(condition),
      evaluate: (rows, context) => ({
        rowCount: rows.rowCount,
        columns: [evaluate(rows, context)],
      }),
    };
  }
}

function rowsOf(operation: RowChange["operation"]): CompiledTest["rowsOf"] {
  return (changes) =>
    changes.flatMap((change) => (change.operation === operation ? [change.row] : []));
}

function replacedRows(changes: readonly RowChange[]): readonly Row[] {
  return changes.flatMap(({ before, operation }) =>
    operation === "update" && before !== undefined ? [before] : [],
  );
}

/**
 * Returns the rows that reference a key that they did not reference before, except those whose
 * parent is among the rows of the same step.
 */
function referring(
  table: TableEntry,
  key: ForeignKeyEntry,
  changes: readonly RowChange[],
): readonly Row[] {
  const written = changes.filter(
    (change) => change.operation !== "delete" && refersAnew(table, key, change),
  );
  if (key.tableId !== table.tableId) return written.map(({ row }) => row);
  const referenced = referencedKeyOf(key, table);
  const { keyOf } = placeOf(key, table, referenced);
  const textOf = (values: Row): string => keyTextOf(referenced.types, values);
  const own = new Set(written.map(({ row }) => textOf(valuesIn(referenced, row))));
  return written.flatMap(({ row }) => {
    const values = keyOf(row);
    return values !== undefined && values !== "mixed" && own.has(textOf(values)) ? [] : [row];
  });
}

function refused(
  table: TableEntry,
  { command, isOfPartition, policies, view }: RowTest,
  tested: "new" | "stored",
): DatabaseError {
  if (view !== undefined && isOfPartition === true) {
    return new DatabaseError(
      "CHECK_VIOLATION",
      `Cannot write a row to partition ${view}: its values are outside the bounds of the partition`,
      { hint: `write the row to ${nameOf(table)}, which chooses the right partition` },
    );
  }
  if (view !== undefined) {
    return new DatabaseError(
      "CHECK_VIOLATION",
      `Cannot write a row to ${nameOf(table)}: it does not meet the condition of view ${view}, ` +
        "which was created WITH CHECK OPTION",
      { sqlstate: "44000" },
    );
  }
  const word = command.toUpperCase();
  const why =
    policies.length === 0
      ? `no ${word} policy applies to the caller's role`
      : `the ${tested} row meets none of the ${word} policies (${policies.join(", ")})`;
  return new DatabaseError("PERMISSION_DENIED", `Cannot write a row to ${nameOf(table)}: ${why}`);
}
