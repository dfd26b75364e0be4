/**
 * What the parts of the binder share: slots of the statement, column ids, and the place in it
 * where an expression stands.
 */

import { DatabaseError } from "../../base/errors.ts";
import {
  QUERY_TOWER_MAX,
  STATEMENT_COLUMNS_MAX,
  STATEMENT_PARTS_MAX,
  STATEMENT_SOURCES_MAX,
} from "../../base/limits.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { BIGINT, decimalType, FILE, INT, typeName, UNKNOWN } from "../../types/mod.ts";
import { aggregateNames, isAggregate } from "../functions/aggregate/aggregates.ts";
import { functionExists, functionNames } from "../functions/registry.ts";
import { isTableFunction, tableFunctionNames } from "../functions/table/table_functions.ts";
import { isWindowName, windowFunctionNames } from "../functions/window_functions.ts";
import type { AstNode, Expr, ExprSlot, SelectStatement } from "../parse/ast/ast.ts";
import { MANY_SOURCES, tooManyParts } from "../parse/bounds.ts";
import type { Alike } from "./alike.ts";
import type { BoundRows, BoundSelect, BoundTableFunction, Requirement } from "./bound.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundWindow,
  BoundWindowCall,
  LiteralRead,
} from "./bound_expressions.ts";
import { insteadOfFunction } from "./other_names.ts";
import type { RelationNode, Scope } from "./scope.ts";
import type { StoredNumber } from "./stored_numbers.ts";

/** The number of characters that may be bound again; a part counts each time it is bound. */
const BOUND_AGAIN_MAX = 131_072;

/** A fixed cost, in characters, that each repeated binding adds. */
const BOUND_AGAIN_COST = 100;

/** What a plan may be chosen by. */
export interface TableStatistics {
  /** How many rows a table has; 0 where no plan hangs on it. */
  rowsOf(table: TableEntry): number;
  /** How many whole numbers lie between the bounds of a column, both included, if that is known. */
  spanOf(table: TableEntry, columnId: number): number | undefined;
}

/** The values that the caller supplies to the binder. */
export interface BindingOptions {
  readonly statistics?: TableStatistics;
  /**
   * Called at intervals while the statement is bound.
   *
   * @param bytes The approximate memory that the bound statement takes so far.
   * @throws {DatabaseError} If the statement has to stop.
   */
  readonly watch?: Watch | undefined;
}

export type Watch = (bytes: number) => void;

/** Parts bound between two checks of the deadline: about a tenth of a millisecond. */
const PARTS_PER_LOOK = 256;

/** Parts bound between two turns: one or two milliseconds. */
const PARTS_PER_TURN = 2048;

/** The least memory of one part of a statement: its node, bound, planned and compiled. */
const BYTES_PER_PART = 512;

/** Grows while one statement is bound. */
export class StatementBinding {
  /** Types of `$1`, `$2`, …; slot n − 1. Lifted literals follow them. */
  readonly parameterTypes: readonly DataType[];
  readonly requirements: Requirement[] = [];
  /** Numbers of the parameters that the statement names. */
  readonly usedParameters: Set<number> = new Set<number>();
  /** Placeholders of FILE('x'), in order of appearance. */
  readonly files: string[] = [];
  /** Untyped literals to be read before the statement runs. */
  readonly literals: LiteralRead[] = [];
  /** Numbers that the statement stores in timestamp columns. */
  readonly storedNumbers: StoredNumber[] = [];
  /** What long VALUES are, by the rows of their nodes, where they were bound before the rest. */
  readonly longRows: Map<readonly (readonly Expr[])[], BoundRows> = new Map<
    readonly (readonly Expr[])[],
    BoundRows
  >();
  /** Views that were expanded so far. */
  viewCount = 0;
  /** How many entries of WITH and views are read through each other, in the query at hand. */
  towerHeight = 0;
  /** Columns that say whether an outer join found a row, where they were asked for. */
  readonly presences: Map<RelationNode, BoundColumn> = new Map<RelationNode, BoundColumn>();
  #nextColumnId = 1;
  #boundAgain = 0;
  #partCount = 0;
  /** The parts that were bound before this step. */
  #partsBefore = 0;
  #partsBeforeTurn = 0;
  #sourceCount = 0;

  readonly statistics: TableStatistics;
  readonly #watch: Watch | undefined;

  constructor(
    parameterTypes: readonly DataType[],
    { statistics = { rowsOf: () => 0, spanOf: () => undefined }, watch }: BindingOptions = {},
  ) {
    this.parameterTypes = parameterTypes;
    this.statistics = statistics;
    this.#watch = watch;
  }

  /** Counts one more bound part. @throws {DatabaseError} If the statement has to stop. */
  notePart(): void {
    this.#partCount += 1;
    if (this.#partCount % PARTS_PER_LOOK !== 0) return;
    if (this.#partCount - this.#partsBefore > STATEMENT_PARTS_MAX) throw tooManyParts();
    this.#watch?.(this.#partCount * BYTES_PER_PART);
  }

  /** Yields to other requests before the next part is bound. */
  endStep(): void {
    this.#partsBefore = this.#partCount;
  }

  /**
   * Whether the binder should let others run, because it has bound many parts since it last did.
   * Unlike {@linkcode endStep}, this does not begin a new count of the parts that are allowed.
   */
  isTurnOver(): boolean {
    if (this.#partCount - this.#partsBeforeTurn < PARTS_PER_TURN) return false;
    this.#partsBeforeTurn = this.#partCount;
    return true;
  }

  /** Binds things one by one, and yields where others should run. */
  *each<Thing, Bound>(
    things: readonly Thing[],
    bind: (thing: Thing) => Bound,
  ): Generator<void, Bound[]> {
    const bound: Bound[] = [];
    for (const thing of things) {
      bound.push(bind(thing));
      if (this.isTurnOver()) yield;
    }
    return bound;
  }

  /**
   * Counts tables that the text, or a view in it, reads.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  noteSources(count: number, node: AstNode): void {
    this.#sourceCount += count;
    if (this.#sourceCount <= STATEMENT_SOURCES_MAX) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot run the statement: with its views it has ${MANY_SOURCES}`,
      { position: node._location.start, hint: "store the result of a view in a table" },
    );
  }

  /**
   * Binds what is read under a name, and returns how high it stands on other such queries.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  named<Query>(
    bind: () => Query,
    { name, position }: { name: string; position: number },
  ): { readonly query: Query; readonly height: number } {
    const around = this.towerHeight;
    this.towerHeight = 0;
    const query = bind();
    const height = this.towerHeight + 1;
    this.towerHeight = around;
    if (height <= QUERY_TOWER_MAX) return { query, height };
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot read "${name}": it reads entries of WITH and views through each other, ${height} deep, and ${QUERY_TOWER_MAX} are allowed`,
      {
        position,
        hint: "read fewer of them through each other, or put what one reads into a table",
      },
    );
  }

  /**
   * Notes that a part of the text is bound again: a recursive query whose types turned out wider,
   * or the arguments of an aggregate that may belong to another query. Without this limit, the
   * repeats of nested parts would multiply.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  bindAgain(node: AstNode): void {
    const { end, start } = node._location;
    this.#boundAgain += end - start + BOUND_AGAIN_COST;
    if (this.#boundAgain <= BOUND_AGAIN_MAX) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      "Cannot bind the statement: its recursive queries or aggregates over queries are nested too deeply",
      {
        position: node._location.start,
        hint: "cast the columns of a recursive query's first query to wide types, or store the result of an inner query in a table",
      },
    );
  }

  /**
   * For what cannot wait: a change may be run again while others wait for it.
   *
   * @throws {DatabaseError} UNSUPPORTED_FEATURE
   */
  requireNoSleep(place: string): void {
    for (const requirement of this.requirements) {
      if (requirement.action !== "sleep") continue;
      throw new DatabaseError("UNSUPPORTED_FEATURE", `Cannot call PG_SLEEP in ${place}`, {
        position: requirement.position,
        hint: "run SELECT PG_SLEEP(…) by itself, in the same transaction if there is one",
      });
    }
  }

  /** Something is read that stands so high. */
  readTower(height: number): void {
    this.towerHeight = Math.max(this.towerHeight, height);
  }

  newColumn({ name, origin, type }: Omit<BoundColumn, "id">): BoundColumn {
    const id = this.#nextColumnId;
    this.#nextColumnId += 1;
    if (id > STATEMENT_COLUMNS_MAX) throw tooManyColumns();
    this.notePart();
    return { id, name, type, origin };
  }

  parameter(index: number, node: AstNode): BoundExpression {
    const type = this.parameterTypes[index - 1];
    this.usedParameters.add(index);
    if (type !== undefined) return { kind: "slot", type, slot: index - 1, isParameter: true };
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${index}: the request has ${this.parameterTypes.length} parameter(s)`,
      { position: node._location.start },
    );
  }

  /**
   * The slot of FILE('x'): behind the parameters, one for each name. Statements with files are
   * never normalised, so no lifted literal is there.
   */
  file(name: string): BoundExpression {
    if (!this.files.includes(name)) this.files.push(name);
    return {
      kind: "slot",
      type: FILE,
      slot: this.parameterTypes.length + this.files.indexOf(name),
    };
  }

  literal(slot: ExprSlot): BoundExpression {
    const type = literalType(slot);
    const index = this.parameterTypes.length + slot.index;
    if (type.kind !== "unknown") return { kind: "slot", type, slot: index };
    const untyped = { position: slot._location.start, reads: this.literals };
    return { kind: "slot", type, slot: index, untyped };
  }
}

function tooManyColumns(): DatabaseError {
  return new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot run the statement: its queries have more than ${STATEMENT_COLUMNS_MAX} columns in total`,
    { hint: "select fewer columns, or run fewer queries at a time" },
  );
}

function literalType({ kind, precision, scale }: ExprSlot): DataType {
  switch (kind) {
    case "integer":
      return INT;
    case "bigint":
      return BIGINT;
    case "numeric":
      return decimalType(precision ?? 1, scale ?? 0);
    case "string":
      return UNKNOWN;
  }
}

/** Collects the aggregates of a block; its presence says that aggregates are allowed here. */
export interface AggregateSink {
  readonly aggregates: BoundAggregate[];
  /** The same, to be found. */
  readonly known: Alike<BoundAggregate>;
  /** Calls of GROUPING, which make a block a grouping one as well. */
  readonly groupings: { readonly args: readonly BoundExpression[]; readonly start: number }[];
}

/** Collects the calls over windows of a block; its presence says that they are allowed here. */
export interface WindowSink {
  readonly calls: BoundWindowCall[];
  /** The same, to be found. */
  readonly known: Alike<BoundWindowCall>;
  /** One window for all calls over the same rows in the same order. */
  readonly orders: BoundWindow[];
  readonly knownOrders: Alike<BoundWindow>;
  /** What WINDOW names. */
  readonly named: Map<string, NamedWindow>;
}

export interface NamedWindow {
  readonly window: BoundWindow;
  /** Whether its text has a frame: only then may nobody extend it. */
  readonly hasFrame: boolean;
}

/** Collects the table functions of a select list; its presence says that they are allowed here. */
export interface ExpansionSink {
  readonly calls: ExpansionCall[];
  /** The same calls, indexed for lookup. */
  readonly known: Alike<ExpansionCall>;
}

export interface ExpansionCall {
  readonly made: BoundTableFunction;
  /** The columns from which the result of the call is read. */
  readonly columns: readonly BoundColumn[];
}

/** Where an expression stands. */
export interface Place {
  readonly statement: StatementBinding;
  readonly scope: Scope;
  /** For messages: "WHERE", "the select list" … */
  readonly clause: string;
  readonly sink: AggregateSink | undefined;
  readonly windows?: WindowSink | undefined;
  readonly expansions?: ExpansionSink | undefined;
  /** Whether an expression without FILE right may hold FILE('x'). */
  readonly allowsFiles?: boolean;
  /** Binds a query inside the expression; absent where none may stand. */
  readonly bindInner?: BindInner | undefined;
  /** What a name may mean that is unknown in the scope. */
  readonly outer?: Correlation | undefined;
}

/** The expression around a query. */
export interface Correlation {
  /** Where that expression stands. */
  readonly place: Place;
  /**
   * Hands a value of the outer query to the inner one; the result is how the inner one reads it.
   */
  capture(value: BoundExpression): BoundExpression;
  /**
   * Returns a function that undoes every capture made from now on, at this level and further out.
   */
  mark(): () => void;
}

/** Binds a query that stands in an expression. */
export type BindInner = (query: SelectStatement, outer: Correlation) => BoundSelect;

/** Binds an expression where it stands; parts of the binder call back through this. */
export type Bind = (expression: Expr, place: Place) => BoundExpression;

export function notAvailable(node: AstNode, what: string): DatabaseError {
  return new DatabaseError("UNSUPPORTED_FEATURE", `Cannot run ${what}: not available yet`, {
    position: node._location.start,
  });
}

export function unknownFunction(
  name: string,
  types: readonly DataType[],
  node: AstNode,
): DatabaseError {
  const signature = `${name}(${types.map((type) => typeName(type)).join(", ")})`;
  const isKnown =
    functionExists(name) ||
    isAggregate(name) ||
    isWindowName(name) ||
    isTableFunction(name) ||
    name === "row_to_json";
  if (!isKnown && FUNCTIONS_TO_COME.has(name)) return notAvailable(node, `function ${name}`);
  const what = isKnown ? "it does not take these types" : "there is none";
  const near = isKnown ? undefined : nearestName(name, knownFunctions());
  const hint =
    insteadOfFunction(name) ?? (near === undefined ? undefined : `did you mean ${near}?`);
  return new DatabaseError("FUNCTION_NOT_FOUND", `Cannot find function ${signature}: ${what}`, {
    position: node._location.start,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** Functions that the contract names for a later version. */
const FUNCTIONS_TO_COME: ReadonlySet<string> = new Set([
  "jsonb_path_exists",
  "jsonb_path_match",
  "jsonb_path_query",
  "jsonb_path_query_array",
]);

function knownFunctions(): string[] {
  return [
    ...functionNames(),
    ...aggregateNames(),
    ...windowFunctionNames(),
    ...tableFunctionNames(),
  ];
}
