/**
 * INSERT: which column each value goes to, with its cast.
 *
 * How wide a source is says which columns it fills when none are listed; only then is it known what
 * each value is cast to. So a source is bound in two steps.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { isNumeric, TEXT } from "../../../types/mod.ts";
import { isTableFunction } from "../../functions/table/table_functions.ts";
import type {
  Expr,
  InsertStatement,
  LiteralValuesStatement,
  SelectStatement,
  ValuesStatement,
} from "../../parse/ast/ast.ts";
import { LiteralCell } from "../../parse/ast/ast.ts";
import { holdsQuery } from "../../parse/ast/query_nodes.ts";
import { directPartsOf, partsOf } from "../../parse/ast/tree_parts.ts";
import { literalPosition } from "../../parse/text/literal_list.ts";
import { literalValuesToRows } from "../../parse/text/literal_nodes.ts";
import type { Place, StatementBinding } from "../binding.ts";
import type { BoundSelect } from "../bound.ts";
import { selectFromQuery } from "../bound_nodes.ts";
import { castInColumn, castTo } from "../expression/casts.ts";
import { bindInSteps } from "../query/select_binder.ts";
import { queriesAround } from "../query/select_world.ts";
import { Scope } from "../scope.ts";
import { type BoundConflict, bindConflict } from "./conflict_binder.ts";
import {
  type BoundCell,
  bindCell,
  bindTarget,
  checkTwice,
  type DmlWorld,
  generatedAlways,
  nameOf,
  noteNumber,
  notUpdatable,
  positionOf,
} from "./dml_target.ts";
import { type BoundReturning, bindReturning } from "./returning_binder.ts";

/** Rows that are bound at a step: a row of a few expressions takes a dozen microseconds. */
const ROWS_PER_STEP = 16;

export type InsertSource =
  | { readonly kind: "rows"; readonly rows: readonly (readonly BoundCell[])[] }
  | { readonly kind: "literals"; readonly literals: LiteralValuesStatement }
  /** Outputs are cast to the target columns already. */
  | { readonly kind: "query"; readonly query: BoundSelect };

export interface BoundInsert {
  readonly kind: "insert";
  readonly table: TableEntry;
  /** Table positions that the source fills, in its order. */
  readonly targets: readonly number[];
  readonly source: InsertSource;
  readonly conflict: BoundConflict | undefined;
  readonly returning: BoundReturning | undefined;
}

/** Yields behind every few rows of a list: a long one takes longer than a turn may. */
export function* bindInsert(
  insert: InsertStatement,
  world: DmlWorld,
): Generator<void, BoundInsert> {
  const target = bindTarget(insert.into, world);
  const { table } = target;
  if (table.kind === "stream" && insert.onConflict !== undefined) {
    throw notUpdatable(table, "ON CONFLICT", insert);
  }
  const listed = insert.columns?.map((name) => positionOf(table, name));
  checkTwice(insert.columns ?? []);
  const source = yield* bindSource(insert, world);
  const { width } = source;
  const targets = listed ?? table.columns.slice(0, width).map((_, position) => position);
  if (width !== targets.length) {
    const more = width > targets.length ? "more" : "fewer";
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot insert into ${nameOf(table)}: there are ${more} values (${width}) than columns (${targets.length})`,
      { position: insert.insert._location.start },
    );
  }
  const placed = source.into({ table, targets });
  return {
    kind: "insert",
    table,
    targets,
    source: "next" in placed ? yield* placed : placed,
    conflict:
      insert.onConflict === undefined ? undefined : bindConflict(insert.onConflict, target, world),
    returning: bindReturning(insert.returning, { target, from: target.from, world }),
  };
}

/** Table positions of the columns that a source fills, in its order. */
interface Filled {
  readonly table: TableEntry;
  readonly targets: readonly number[];
}

/** The source of an INSERT before it is known which columns it fills. */
interface UnplacedSource {
  /** Values in a row. */
  readonly width: number;
  into(filled: Filled): InsertSource | Generator<void, InsertSource>;
}

function* bindSource(
  { insert }: InsertStatement,
  world: DmlWorld,
): Generator<void, UnplacedSource> {
  switch (insert.type) {
    case "default values":
      return { width: 0, into: () => ({ kind: "rows", rows: [[]] }) };
    case "literal values":
      return {
        width: insert.columnCount,
        into: (filled) => {
          if (!areCastable(insert, filled)) {
            return bindCells(literalValuesToRows(insert), filled, world);
          }
          requireWritable(insert, filled);
          return { kind: "literals", literals: insert };
        },
      };
    case "values":
      // Which of the rows are written, and in which order, is the matter of a query.
      if (insert.orderBy !== undefined || insert.limit !== undefined) {
        return yield* bindQuerySource(insert, world);
      }
      if (isQuery(insert)) return yield* bindQuerySource(asSelect(insert), world, true);
      return {
        width: insert.values[0]?.length ?? 0,
        into: (filled) => bindCells(insert, filled, world),
      };
    default:
      return yield* bindQuerySource(insert, world);
  }
}

function ownParts(part: object): readonly unknown[] {
  return holdsQuery(part) ? [] : directPartsOf(part);
}

/**
 * Whether a single VALUES row is bound as a query: it calls a table function, and so may produce
 * several rows, or holds a query, which may take long and is read where other rows are read.
 */
function isQuery({ values }: ValuesStatement): boolean {
  if (values.length !== 1) return false;
  let readsRows = false;
  for (const part of partsOf(values, ownParts)) {
    if (holdsQuery(part)) readsRows = true;
    const call: { readonly type?: unknown; readonly function?: { readonly name?: unknown } } = part;
    const name = call.type === "call" ? call.function?.name : undefined;
    if (typeof name === "string" && isTableFunction(name)) return true;
    // Only a list of cells takes these.
    if (name === "file" || call.type === "default") return false;
  }
  return readsRows;
}

function asSelect({ _location, values }: ValuesStatement): SelectStatement {
  const columns = (values[0] ?? []).map((expr) => ({ expr, _location: expr._location }));
  return { type: "select", columns, _location };
}

/** @param isRow Whether it stands for a row of VALUES. */
function* bindQuerySource(
  node: SelectStatement,
  world: DmlWorld,
  isRow = false,
): Generator<void, UnplacedSource> {
  const query = yield* bindInSteps(node, { ...world, isOutermost: false, keepsUntyped: true });
  const { statement } = world;
  return {
    width: query.outputs.length,
    into: (filled) => ({
      kind: "query",
      query: castOutputs(query, { ...filled, statement, node, isRow }),
    }),
  };
}

function* bindCells(
  { _location, values }: ValuesStatement,
  { table, targets }: Filled,
  world: DmlWorld,
): Generator<void, InsertSource> {
  const place: Place = {
    statement: world.statement,
    scope: new Scope([]),
    clause: "VALUES",
    sink: undefined,
    allowsFiles: true,
    ...queriesAround(world),
  };
  const rows: BoundCell[][] = [];
  for (const row of values) {
    if (row.length !== targets.length) {
      throw new DatabaseError("INVALID_QUERY", "Cannot insert: the rows differ in length", {
        position: _location.start,
      });
    }
    rows.push(row.map((cell, i) => bindCell(cell, { table, position: targets[i] ?? 0, place })));
    if (rows.length % ROWS_PER_STEP !== 0) continue;
    place.statement.endStep();
    yield;
  }
  return { kind: "rows", rows };
}

/** Whether numbers and booleans stand only where there is a cast for every one of them. */
function areCastable(
  { columnCount, kinds }: LiteralValuesStatement,
  { table, targets }: Filled,
): boolean {
  for (const [column, position] of targets.entries()) {
    const type = table.columns[position]?.type ?? TEXT;
    const takesNumbers = isNumeric(type) || type.kind === "text";
    const takesBooleans = type.kind === "boolean" || type.kind === "text";
    for (let cell = column; cell < kinds.length; cell += columnCount) {
      const kind = kinds[cell];
      const isNumber = kind === LiteralCell.integer || kind === LiteralCell.numeric;
      if (isNumber && !takesNumbers) return false;
      const isTruth = kind === LiteralCell.true || kind === LiteralCell.false;
      if (isTruth && !takesBooleans) return false;
    }
  }
  return true;
}

/** GENERATED ALWAYS takes DEFAULT only. */
function requireWritable(literals: LiteralValuesStatement, { table, targets }: Filled): void {
  const { columnCount, kinds } = literals;
  for (const [column, position] of targets.entries()) {
    const entry = table.columns[position];
    if (entry?.generatedAlways !== true) continue;
    for (let cell = column; cell < kinds.length; cell += columnCount) {
      if (kinds[cell] !== LiteralCell.default)
        throw generatedAlways(table, entry, literalPosition(literals, cell));
    }
  }
}

function castOutputs(
  query: BoundSelect,
  {
    isRow,
    node,
    statement,
    table,
    targets,
  }: Filled & { statement: StatementBinding; node: Expr; isRow: boolean },
): BoundSelect {
  // The casts stand above DISTINCT and ORDER BY of the query: they must not change what it yields.
  const mustNest = query.distinct !== "none" || query.orderBy.length > 0;
  const source = mustNest ? selectFromQuery(query, statement) : query;
  const outputs = source.outputs.map(({ name, expression }, i) => {
    const column = table.columns[targets[i] ?? 0];
    if (column?.generatedAlways === true) {
      throw generatedAlways(table, column, node._location.start);
    }
    if (column === undefined) return { name, expression };
    noteNumber(expression, column, statement);
    const cast = castTo(expression, { to: column.type, mode: "assignment", node });
    const row = { rowIndex: 0, columnIndex: i, rowCount: 1 };
    const place = { column: column.name, source: isRow ? row : ("query" as const) };
    return { name, expression: castInColumn(cast, place) };
  });
  return { ...source, outputs };
}
