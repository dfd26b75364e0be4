/**
 * Checks that existing rows satisfy the conditions of an ALTER TABLE: that a column contains no
 * NULL, that a CHECK is true, or that values can be represented in a column's new type.
 *
 * The rows of all owners are read under the current definition and checked against the altered
 * definition. This takes many ticks, during which other requests run. Rows written by these
 * requests have higher seqs, and are checked in the tick in which the definition changes.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError, type ErrorCode } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { ColumnEntry, TableEntry } from "../../catalog/mod.ts";
import { type IndexColumn, indexColumnsOf, type ScanBatch, type Store } from "../../storage/mod.ts";
import {
  type Batch,
  casterFor,
  constVector,
  domainName,
  sameType,
  typeName,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { bindCondition } from "../bind/expression/expression_binder.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import { columnIdsIn } from "../bind/walk.ts";
import { compileKeyExpression } from "../execute/build/key_computation.ts";
import { storedIndexOf } from "../execute/build/stored_index.ts";
import { checkScope } from "../execute/build/table_runtime.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { isDomainFault, valueTest } from "../execute/evaluate/checked_values.ts";
import { compileExpression } from "../execute/evaluate/expression.ts";

/**
 * A condition that an ALTER TABLE action imposes on existing rows, and the position of the action
 * in the statement.
 */
export type RowDemand =
  | { readonly kind: "not null"; readonly columnId: number; readonly position: number }
  | { readonly kind: "form"; readonly columnId: number; readonly position: number }
  | { readonly kind: "domain"; readonly columnId: number; readonly position: number }
  | {
      readonly kind: "check";
      readonly name: string;
      /** The viewId of the partition that imposes the check; absent for a check of the table. */
      readonly viewId?: number;
      readonly position: number;
    }
  | { readonly kind: "index"; readonly indexId: number; readonly position: number };

export interface InspectionOptions {
  /** The definition of the table before the ALTER TABLE, under which its rows are stored. */
  readonly table: TableEntry;
  /** The definition of the table after the ALTER TABLE. */
  readonly next: TableEntry;
  readonly demands: readonly RowDemand[];
  /** The context in which existing rows are checked. The outcome does not depend on the caller. */
  readonly context?: ExecutionContext;
  readonly store: Pick<Store, "owners" | "scan">;
}

/** The error codes of computations whose messages may quote values from rows. */
const QUOTING: ReadonlySet<ErrorCode> = new Set([
  "TYPE_MISMATCH",
  "INVALID_INPUT",
  "INVALID_VALUE",
  "VALUE_TOO_LONG",
  "VALUE_OUT_OF_RANGE",
  "DIVISION_BY_ZERO",
  "DIMENSION_MISMATCH",
]);

/** Selects the row versions with a seq above `after` and up to `upTo`. */
export interface InspectedRange {
  readonly after: Seq;
  readonly upTo: Seq;
}

/** An empty batch, returned between the rows of two owners so that other requests can run. */
const NO_ROWS: ScanBatch = { rowCount: 0, columns: [] };

/**
 * Checks a batch of rows.
 * @throws {DatabaseError}
 */
type Judge = (batch: Batch) => void;

export class RowInspection {
  readonly #options: InspectionOptions;
  /** The columns of the altered table that the conditions read. */
  readonly #columns: readonly ColumnEntry[];
  /**
   * The stored form of each column in `#columns`; undefined for a column that existing rows lack.
   */
  readonly #stored: readonly (ColumnEntry | undefined)[];
  readonly #judges: readonly Judge[];

  constructor(options: InspectionOptions) {
    this.#options = options;
    const { demands, next, table } = options;
    const needed = new Set(demands.flatMap((demand) => columnsOf(demand, next)));
    this.#columns = next.columns.filter(({ columnId }) => needed.has(columnId));
    this.#stored = this.#columns.map(({ columnId }) =>
      table.columns.find((column) => column.columnId === columnId),
    );
    this.#judges = demands.flatMap((demand) => this.#judgeFor(demand) ?? []);
  }

  /**
   * The position at which conversion errors are reported. It is the position of the first
   * condition, because all rows are converted before any row is checked.
   */
  get #position(): number {
    return this.#options.demands[0]?.position ?? 0;
  }

  /** Whether existing rows do not have to meet any condition. */
  get isEmpty(): boolean {
    return this.#judges.length === 0;
  }

  /**
   * Checks the live rows with versions in the given range, over many ticks.
   *
   * @throws {DatabaseError} NOT_NULL_VIOLATION, CHECK_VIOLATION, and the errors of casts
   */
  async inspect(bounds: InspectedRange, pause: () => Promise<void>): Promise<void> {
    for (const batch of this.#rowsWithin(bounds)) {
      this.#judge(batch);
      await pause();
    }
  }

  /** Checks the live rows with versions in the given range, within the current tick. */
  inspectNow(bounds: InspectedRange): void {
    for (const batch of this.#rowsWithin(bounds)) this.#judge(batch);
  }

  *#rowsWithin({ after, upTo }: InspectedRange): Iterable<ScanBatch> {
    const { store, table } = this.#options;
    const columnIds = this.#stored.flatMap((column) => column?.columnId ?? []);
    for (const owner of store.owners(table.tableId)) {
      const scan = store.scan(table.tableId, { owner, after, upTo, columnIds, mayBeEmpty: true });
      try {
        for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
          yield batch;
          // If the conditions read no stored column, they have the same result for all rows, so
          // checking one row is enough.
          if (columnIds.length === 0 && batch.rowCount > 0) return;
        }
      } finally {
        scan.close();
      }
      yield NO_ROWS;
    }
  }

  #judge(batch: ScanBatch): void {
    if (batch.rowCount === 0) return;
    const rows = this.#unquoted(this.#position, () => this.#asNext(batch));
    for (const judge of this.#judges) judge(rows);
  }

  #unquoted<T>(position: number, compute: () => T): T {
    return unquoted(this.#options.next, position, compute);
  }

  /** Converts rows to the column types of the altered definition. */
  #asNext({ columns, rowCount }: ScanBatch): Batch {
    let index = 0;
    return {
      rowCount,
      columns: this.#columns.map((column, i): Vector => {
        const stored = this.#stored[i];
        if (stored === undefined) return constVector(column.missing, rowCount);
        const vector = columns[index] ?? constVector(null, rowCount);
        index += 1;
        return asType(vector, stored, column);
      }),
    };
  }

  /**
   * Returns a check that computes the index keys of each row, because the computation may fail.
   */
  #indexJudge(indexId: number, position: number): Judge {
    const computations = keyColumnsOf(this.#options.next, indexId).flatMap(({ expression }) =>
      expression === undefined ? [] : { expression, compute: compileKeyExpression(expression) },
    );
    return (batch) => {
      for (const { compute, expression } of computations) {
        const read = expression.reads.map(({ columnId }) => {
          const at = this.#columns.findIndex((column) => column.columnId === columnId);
          return batch.columns[at] ?? constVector(null, batch.rowCount);
        });
        this.#unquoted(position, () => compute(read, batch.rowCount));
      }
    };
  }

  /** Returns a check of a column's values against the conditions of its domain. */
  #domainJudge(column: ColumnEntry, at: number, position: number): Judge | undefined {
    const { context, next } = this.#options;
    const { domain, name, type } = column;
    const test = valueTest(column, compileExpression);
    if (test === undefined) return undefined;
    const given = defined(context, "constraint validation: execution context is missing");
    return ({ columns, rowCount }) => {
      for (const value of valuesOf(columns[at] ?? constVector(null, rowCount))) {
        const fault = this.#unquoted(position, () => domainFaultOf(() => test(value, given)));
        if (fault === undefined) continue;
        const shown =
          domain === undefined ? `type ${typeName(type)}` : `domain ${domainName(domain)}`;
        throw new DatabaseError(
          fault,
          `Cannot use ${shown} for column "${name}" of ${nameOf(next)}: an existing row ` +
            "violates the domain",
          { position, hint: "change or delete the rows that violate the domain first" },
        );
      }
    };
  }

  /**
   * Returns the check for a condition on existing rows; undefined if a later action of the
   * statement makes the condition unnecessary.
   */
  #judgeFor(demand: RowDemand): Judge | undefined {
    const { next, context } = this.#options;
    const { position } = demand;
    if (demand.kind === "check") {
      const check = demandedCheck(demand, next);
      if (check === undefined) return undefined;
      const { layout, scope } = checkScope({ name: next.name, columns: this.#columns });
      const checkContext = {
        statement: new StatementBinding([]),
        scope,
        clause: "CHECK",
        sink: undefined,
      };
      const evaluate = compileExpression(
        bindCondition(parseStored(check.sql, this.#columns), checkContext),
        layout,
      );
      const given = defined(context, "constraint validation: execution context is missing");
      return (batch) => {
        const held = this.#unquoted(position, () => valuesOf(evaluate(batch, given)));
        if (!held.includes(false)) return;
        throw new DatabaseError(
          "CHECK_VIOLATION",
          `Cannot add check "${check.name}" to ${nameOf(next)}: an existing row violates it`,
          { position, hint: "change or delete the rows that violate the check first" },
        );
      };
    }
    if (demand.kind === "index") return this.#indexJudge(demand.indexId, position);
    const at = this.#columns.findIndex(({ columnId }) => columnId === demand.columnId);
    const column = this.#columns[at];
    // The value was read in its new type, which proves that the type can represent it.
    if (column === undefined) return undefined;
    if (demand.kind === "form") return () => undefined;
    if (demand.kind === "domain") return this.#domainJudge(column, at, position);
    if (!column.notNull) return undefined;
    return (batch) => {
      const vector = batch.columns[at];
      if (vector === undefined || !valuesOf(vector).includes(null)) return;
      throw new DatabaseError(
        "NOT_NULL_VIOLATION",
        `Cannot make column "${column.name}" of ${nameOf(next)} NOT NULL: an existing row ` +
          "contains NULL",
        {
          position,
          hint: `run UPDATE … SET ${column.name} = … WHERE ${column.name} IS NULL first`,
        },
      );
    };
  }
}

/**
 * Runs a computation over rows, and removes values from its error messages, because the user who
 * alters a table may not have the right to read its rows.
 *
 * @throws {DatabaseError} An error with the original code, but without any value.
 */
export function unquoted<T>(next: TableEntry, position: number, compute: () => T): T {
  try {
    return compute();
  } catch (error) {
    if (!(error instanceof DatabaseError) || !QUOTING.has(error.code)) throw error;
    throw new DatabaseError(
      error.code,
      `Cannot alter table ${nameOf(next)}: an expression in the new definition fails for an ` +
        "existing row",
      { position, hint: "change or delete the rows for which it fails first" },
    );
  }
}

/** Returns whether a table has a live row of any owner, even one that is not durable yet. */
export function holdsRows(store: Store, tableId: number): boolean {
  if (store.appliedSeq === store.visibleSeq) return store.liveRowCount(tableId, undefined) > 0;
  return store.owners(tableId).some((owner) => {
    const scan = store.scan(tableId, {
      owner,
      upTo: store.appliedSeq,
      columnIds: [],
    });
    try {
      return scan.next() !== undefined;
    } finally {
      scan.close();
    }
  });
}

/** Returns the names of the columns that a stored CHECK reads. */
export function columnsNamedIn(sql: string, table: TableEntry): ReadonlySet<string> {
  const { columns, scope } = checkScope(table);
  const context = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const ids = columnIdsIn(bindCondition(parseStored(sql, table.columns), context));
  return new Set(columns.filter(({ id }) => ids.has(id)).map(({ name }) => name));
}

function keyColumnsOf(table: TableEntry, indexId: number): readonly IndexColumn[] {
  const index = table.indexes?.find((each) => each.indexId === indexId);
  return index === undefined ? [] : indexColumnsOf(table.columns, storedIndexOf(table, index));
}

function demandedCheck(
  { name, viewId }: RowDemand & { readonly kind: "check" },
  { checks, partitionChecks = [] }: TableEntry,
): { readonly name: string; readonly sql: string } | undefined {
  return viewId === undefined
    ? checks.find((each) => each.name === name)
    : partitionChecks.find((each) => each.name === name && each.viewId === viewId);
}

function columnsOf(demand: RowDemand, next: TableEntry): readonly number[] {
  if (demand.kind === "index") {
    return keyColumnsOf(next, demand.indexId).flatMap(
      ({ expression }) => expression?.reads.map(({ columnId }) => columnId) ?? [],
    );
  }
  if (demand.kind !== "check") return [demand.columnId];
  const check = demandedCheck(demand, next);
  if (check === undefined) return [];
  const named = columnsNamedIn(check.sql, next);
  return next.columns.flatMap(({ columnId, name }) => (named.has(name) ? [columnId] : []));
}

/** Converts the values of a column to the column's type in the altered definition. */
export function asType(vector: Vector, stored: ColumnEntry, { type }: ColumnEntry): Vector {
  if (sameType(stored.type, type)) return vector;
  const cast = casterFor(stored.type, type, "explicit");
  if (cast === undefined) return vector;
  const values = valuesOf(vector).map((value): Value => (value === null ? null : cast(value)));
  return vectorFromValues(type, values);
}

/** Returns the code of the condition that a test finds violated; undefined if it finds none. */
function domainFaultOf(test: () => void): ErrorCode | undefined {
  try {
    test();
  } catch (error) {
    if (isDomainFault(error)) return error.code;
    throw error;
  }
  return undefined;
}
