/**
 * What ALTER TABLE demands of the rows that are there already: no NULL in a column, a CHECK that
 * holds, a value that has a form under the column's new type.
 *
 * Rows of every owner are read as the table is now and judged as its next definition has them. The
 * reading takes many turns, in which others run; rows that they write lie above the bound and are
 * inspected in the turn in which the definition changes.
 */
import { type Condition, DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { ColumnEntry, TableEntry } from "../../catalog/mod.ts";
import type { ScanBatch, Store } from "../../storage/mod.ts";
import {
  type Batch,
  casterFor,
  constVector,
  sameType,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { bindCondition } from "../bind/expression/expression_binder.ts";
import { columnIdsIn } from "../bind/walk.ts";
import { checkScope } from "../execute/build/table_runtime.ts";
import { compileExpression } from "../execute/evaluate/expression.ts";
import type { Run } from "../execute/run/run.ts";
import { parseExpression } from "../parse/parser.ts";

/** A demand of one action of a statement, at its position. */
export type RowDemand =
  | { readonly kind: "not null"; readonly columnId: number; readonly position: number }
  | { readonly kind: "form"; readonly columnId: number; readonly position: number }
  | { readonly kind: "check"; readonly name: string; readonly position: number };

export interface InspectionOptions {
  /** The definition under which the rows are stored. */
  readonly table: TableEntry;
  /** The definition that they shall have. */
  readonly next: TableEntry;
  readonly demands: readonly RowDemand[];
  /** For expressions that read no caller. */
  readonly run: Run;
  readonly store: Pick<Store, "owners" | "scan">;
}

/** Conditions of what computes with values, and names them. */
const QUOTING: ReadonlySet<Condition> = new Set([
  "TYPE_MISMATCH",
  "INVALID_INPUT",
  "INVALID_VALUE",
  "VALUE_TOO_LONG",
  "VALUE_OUT_OF_RANGE",
  "DIVISION_BY_ZERO",
  "DIMENSION_MISMATCH",
]);

/** Versions above `after`, up to `upTo`. */
export interface SeqRange {
  readonly after: Seq;
  readonly upTo: Seq;
}

/** Between two owners others run, too. */
const NO_ROWS: ScanBatch = { rowCount: 0, columns: [] };

/** Refuses a batch of rows. @throws {DatabaseError} */
type Judge = (batch: Batch) => void;

export class RowInspection {
  readonly #options: InspectionOptions;
  /** Columns of the next definition that the demands read. */
  readonly #columns: readonly ColumnEntry[];
  /** The same columns as they are stored; undefined for one that no row has. */
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

  /** Of the first demand: all rows are converted before any of them is judged. */
  get #position(): number {
    return this.#options.demands[0]?.position ?? 0;
  }

  /** Whether there is anything to ask. */
  get isEmpty(): boolean {
    return this.#judges.length === 0;
  }

  /**
   * Judges the live rows whose versions lie within bounds, over many turns.
   *
   * @throws {DatabaseError} NOT_NULL_VIOLATION, CHECK_VIOLATION, what a cast raises
   */
  async inspect(bounds: SeqRange, pause: () => Promise<void>): Promise<void> {
    for (const batch of this.#rowsWithin(bounds)) {
      this.#judge(batch);
      await pause();
    }
  }

  /** The same in this turn. */
  inspectNow(bounds: SeqRange): void {
    for (const batch of this.#rowsWithin(bounds)) this.#judge(batch);
  }

  *#rowsWithin({ after, upTo }: SeqRange): Iterable<ScanBatch> {
    const { store, table } = this.#options;
    const columnIds = this.#stored.flatMap((column) => column?.columnId ?? []);
    for (const owner of store.owners(table.tableId)) {
      const scan = store.scan(table.tableId, { owner, after, upTo, columnIds, mayBeEmpty: true });
      try {
        for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
          yield batch;
          // Rows that all read the same need no further one to be judged.
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

  /**
   * What a computation over rows gives. Its error may quote a value, and who alters a table may be
   * nobody who may read its rows.
   *
   * @throws {DatabaseError} Of the same condition, without any value.
   */
  #unquoted<T>(position: number, compute: () => T): T {
    try {
      return compute();
    } catch (error) {
      if (!(error instanceof DatabaseError) || !QUOTING.has(error.condition)) throw error;
      throw new DatabaseError(
        error.condition,
        `Cannot alter table ${nameOf(this.#options.next)}: what it demands cannot be computed for a row that is there`,
        { position, hint: "change or delete such rows first" },
      );
    }
  }

  /** Rows as the next definition has them. */
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

  /** Undefined when a later action of the statement takes back what made the demand. */
  #judgeFor(demand: RowDemand): Judge | undefined {
    const { next, run } = this.#options;
    const { position } = demand;
    if (demand.kind === "check") {
      const check = next.checks.find(({ name }) => name === demand.name);
      if (check === undefined) return undefined;
      const { layout, scope } = checkScope({ name: next.name, columns: this.#columns });
      const place = {
        statement: new StatementBinding([]),
        scope,
        clause: "CHECK",
        sink: undefined,
      };
      const evaluate = compileExpression(bindCondition(parseExpression(check.sql), place), layout);
      return (batch) => {
        const held = this.#unquoted(position, () => valuesOf(evaluate(batch, run)));
        if (!held.includes(false)) return;
        throw new DatabaseError(
          "CHECK_VIOLATION",
          `Cannot have check "${check.name}" on ${nameOf(next)}: a row violates it`,
          { position, hint: "change or delete such rows first" },
        );
      };
    }
    const at = this.#columns.findIndex(({ columnId }) => columnId === demand.columnId);
    const column = this.#columns[at];
    // That a value has a form is seen when it is read.
    if (column === undefined) return undefined;
    if (demand.kind === "form") return () => undefined;
    if (!column.notNull) return undefined;
    return (batch) => {
      const vector = batch.columns[at];
      if (vector === undefined || !valuesOf(vector).includes(null)) return;
      throw new DatabaseError(
        "NOT_NULL_VIOLATION",
        `Cannot set column "${column.name}" of ${nameOf(next)} NOT NULL: a row holds NULL in it`,
        { position, hint: `UPDATE … SET ${column.name} = … WHERE ${column.name} IS NULL first` },
      );
    };
  }
}

/** Whether a table has a live row of anybody, durable or not. */
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

/** Names of the columns that a stored CHECK reads. */
export function columnsNamedIn(sql: string, table: TableEntry): ReadonlySet<string> {
  const { columns, scope } = checkScope(table);
  const place = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const ids = columnIdsIn(bindCondition(parseExpression(sql), place));
  return new Set(columns.filter(({ id }) => ids.has(id)).map(({ name }) => name));
}

function columnsOf(demand: RowDemand, next: TableEntry): readonly number[] {
  if (demand.kind !== "check") return [demand.columnId];
  const check = next.checks.find(({ name }) => name === demand.name);
  if (check === undefined) return [];
  const named = columnsNamedIn(check.sql, next);
  return next.columns.flatMap(({ columnId, name }) => (named.has(name) ? [columnId] : []));
}

function asType(vector: Vector, stored: ColumnEntry, { type }: ColumnEntry): Vector {
  if (sameType(stored.type, type)) return vector;
  const cast = casterFor(stored.type, type, "explicit");
  if (cast === undefined) return vector;
  const values = valuesOf(vector).map((value): Value => (value === null ? null : cast(value)));
  return vectorFromValues(type, values);
}
