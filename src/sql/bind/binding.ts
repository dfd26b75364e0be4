/**
 * Defines the state that all files of the binder share: the slots of the statement, the ids of
 * columns, and the context of an expression.
 */

import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  QUERY_TOWER_MAX,
  STATEMENT_COLUMNS_MAX,
  STATEMENT_PARTS_MAX,
  STATEMENT_SOURCES_MAX,
} from "../../base/limits.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type { FunctionEntry, Routine, TableEntry } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import {
  BIGINT,
  columnTypeOf,
  decimalType,
  FILE,
  INT,
  typeName,
  UNKNOWN,
} from "../../types/mod.ts";
import { waitsForLock } from "../functions/advisory.ts";
import { aggregateNames, isAggregate } from "../functions/aggregate/aggregates.ts";
import { functionExists, functionNames } from "../functions/registry.ts";
import { isTableFunction, tableFunctionNames } from "../functions/table/table_functions.ts";
import { isWindowName, windowFunctionNames } from "../functions/window_functions.ts";
import type { AstNode, Expr, ExprRef, ExprSlot, QName, SelectStatement } from "../parse/ast/ast.ts";
import { MANY_SOURCES, tooManyParts } from "../parse/bounds.ts";
import type {
  BoundRows,
  BoundSelect,
  BoundTableFunction,
  CursorRow,
  PastRead,
  Requirement,
} from "./bound.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundWindow,
  BoundWindowCall,
  LiteralRead,
  UntypedLiteral,
  UntypedParameter,
} from "./bound_expressions.ts";
import type { EquivalenceClasses } from "./equivalence.ts";
import { omittedFeatureOf } from "./omitted_names.ts";
import { insteadOfFunction } from "./other_names.ts";
import type { RelationNode, Scope } from "./scope.ts";
import type { StoredNumber } from "./stored_numbers.ts";

/**
 * The maximum number of characters of SQL that the binder may bind again. Binding the same SQL
 * several times counts several times.
 */
const BOUND_AGAIN_MAX = 131_072;

/** The minimum cost, in characters, of binding a piece of SQL again, however short it is. */
const BOUND_AGAIN_COST = 100;

/** Statistics that the binder may use to choose a plan. */
export interface TableStatistics {
  /** Returns the number of rows in a table; 0 if no plan may depend on it. */
  rowsOf(table: TableEntry): number;
  /** Returns the estimated number of distinct values in a column; undefined if unknown. */
  distinctOf(table: TableEntry, columnId: number): number | undefined;
}

/** Values that the caller supplies to the binder. */
export interface BindingOptions {
  readonly statistics?: TableStatistics;
  /**
   * Called at intervals while the statement is bound.
   *
   * @param bytes The approximate memory that the bound statement takes so far.
   * @throws {DatabaseError} If the statement must stop.
   */
  readonly watch?: BindingWatch | undefined;
}

export type BindingWatch = (bytes: number) => void;

/**
 * How many nodes are bound between two checks of the deadline. Binding them takes about a tenth of
 * a millisecond.
 */
const PARTS_PER_LOOK = 256;

/**
 * How many nodes are bound before the event loop may run other work. Binding them takes one or two
 * milliseconds.
 */
const PARTS_PER_TICK = 2048;

/**
 * The minimum memory that a single node of a statement takes up in its bound, planned and compiled
 * forms together, in bytes.
 */
const BYTES_PER_PART = 512;

/** The state that changes while a statement is bound. */
export class StatementBinding {
  /**
   * The types of `$1`, `$2`, …; `$n` has slot n − 1. The slots of lifted literals come after them.
   */
  readonly parameterTypes: readonly DataType[];
  readonly requirements: Requirement[] = [];
  /** The tables that the statement reads as of an earlier point in time. */
  readonly pastReads: PastRead[] = [];
  /** The numbers of the parameters that the statement uses. */
  readonly usedParameters: Set<number> = new Set<number>();
  readonly #untypedParameters = new Map<number, UntypedParameter>();
  /** The part names in FILE('x') calls, in order of appearance. */
  readonly files: string[] = [];
  /** Untyped literals and parameters to be converted before the statement runs. */
  readonly literals: LiteralRead[] = [];
  /** Numbers that the statement stores in timestamp columns. */
  readonly storedNumbers: StoredNumber[] = [];
  /**
   * The rows of long VALUES lists that were bound ahead of the rest of the statement, keyed by the
   * rows of the syntax tree.
   */
  readonly longRows: Map<readonly (readonly Expr[])[], BoundRows> = new Map<
    readonly (readonly Expr[])[],
    BoundRows
  >();
  /** The number of views that have been expanded in the statement. */
  viewCount = 0;
  /**
   * The number of levels through which the WITH entries and views of the current query read one
   * another.
   */
  towerHeight = 0;
  /**
   * For each relation on the nullable side of an outer join, the column that shows whether the
   * join found a row. Relations that need no such column have no entry.
   */
  readonly presences: Map<RelationNode, BoundColumn> = new Map<RelationNode, BoundColumn>();
  /** The row of a cursor that the statement changes; undefined if it names no cursor. */
  currentRow: CursorRow | undefined;
  /** Whether the functions of a user-defined aggregate are being bound. */
  isWithinSteps = false;
  #nextColumnId = 1;
  #boundAgain = 0;
  #partCount = 0;
  /** The number of nodes bound before the current step began. */
  #partsBefore = 0;
  #partsBeforeTick = 0;
  #sourceCount = 0;

  /**
   * How names refer to variables in a statement of a program; undefined in any other statement.
   */
  variables: VariableNames | undefined;
  readonly statistics: TableStatistics;
  readonly #watch: BindingWatch | undefined;

  constructor(
    parameterTypes: readonly DataType[],
    { statistics = { rowsOf: () => 0, distinctOf: () => undefined }, watch }: BindingOptions = {},
  ) {
    this.parameterTypes = parameterTypes;
    this.statistics = statistics;
    this.#watch = watch;
  }

  /**
   * Counts one more bound node.
   * @throws {DatabaseError} If the statement must stop.
   */
  notePart(): void {
    this.#partCount += 1;
    if (this.#partCount % PARTS_PER_LOOK !== 0) return;
    if (this.#partCount - this.#partsBefore > STATEMENT_PARTS_MAX) throw tooManyParts();
    this.#watch?.(this.#partCount * BYTES_PER_PART);
  }

  /** Marks a pause, in which other requests may run, before the next part is bound. */
  endStep(): void {
    this.#partsBefore = this.#partCount;
  }

  /**
   * Whether the binder should let other work run because it has bound many nodes since the last
   * pause. Unlike {@linkcode endStep}, this method does not reset the count.
   */
  isSliceOver(): boolean {
    if (this.#partCount - this.#partsBeforeTick < PARTS_PER_TICK) return false;
    this.#partsBeforeTick = this.#partCount;
    return true;
  }

  /** Binds items one by one, and yields whenever other work should run. */
  *each<Thing, Bound>(
    things: readonly Thing[],
    bind: (thing: Thing) => Bound,
  ): Generator<void, Bound[]> {
    const bound: Bound[] = [];
    for (const thing of things) {
      bound.push(bind(thing));
      if (this.isSliceOver()) yield;
    }
    return bound;
  }

  /**
   * Counts the tables that the statement reads, directly or through a view.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  noteSources(count: number, node: AstNode): void {
    this.#sourceCount += count;
    if (this.#sourceCount <= STATEMENT_SOURCES_MAX) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot run the statement: together with the views that it reads, it has ${MANY_SOURCES}`,
      { position: node._location.start, hint: "store the result of one of the views in a table" },
    );
  }

  /**
   * Binds a named query. Returns it, together with the number of levels of named queries that it
   * reads.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  named(
    bind: () => BoundSelect,
    { name, position }: { name: string; position: number },
  ): { readonly query: BoundSelect; readonly height: number } {
    const around = this.towerHeight;
    this.towerHeight = 0;
    const query = bind();
    const height = this.towerHeight + 1;
    this.towerHeight = around;
    if (height <= QUERY_TOWER_MAX) return { query, height };
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot read "${name}": it builds on WITH entries and views nested ${height} levels ` +
        `deep, but the maximum is ${QUERY_TOWER_MAX}`,
      {
        position,
        hint: "nest fewer WITH entries and views, or store the result of one of them in a table",
      },
    );
  }

  /**
   * Records that a piece of SQL is bound again. This happens, for example, if the columns of a
   * recursive query need wider types, or if the arguments of an aggregate may belong to a
   * different query. Without a limit, the repetitions of nested parts would multiply.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  bindAgain(node: AstNode): void {
    const { end, start } = node._location;
    this.#boundAgain += end - start + BOUND_AGAIN_COST;
    if (this.#boundAgain <= BOUND_AGAIN_MAX) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      "Cannot run the statement: its recursive queries, or its aggregates over subqueries, are " +
        "nested too deeply",
      {
        position: node._location.start,
        hint:
          "cast the columns in the first part of each recursive query to wide types, or store " +
          "the result of an inner query in a table",
      },
    );
  }

  /**
   * Binds part of a function's body. If the caller lacks a required right, the error names the
   * function that the statement calls, because the caller may not see the names inside its body.
   */
  within<Bound>(routine: string, bind: () => Bound): Bound {
    const { requirements } = this;
    const from = requirements.length;
    const bound = bind();
    for (const needed of requirements.splice(from)) {
      const isAsked = needed.action === "read" || needed.action === "read-view";
      requirements.push(isAsked ? { ...needed, routine } : needed);
    }
    return bound;
  }

  /** Binds a function of a user-defined aggregate. Its expression must not contain a query. */
  withinSteps<Bound>(bind: () => Bound): Bound {
    const around = this.isWithinSteps;
    this.isWithinSteps = true;
    try {
      return bind();
    } finally {
      this.isWithinSteps = around;
    }
  }

  /**
   * Refuses functions that wait, such as sleep, in a statement that changes rows. Other statements
   * would have to wait until the change is complete, and the change may even have to run again.
   *
   * @throws {DatabaseError} UNSUPPORTED_FEATURE
   */
  requireNoWait(place: string): void {
    for (const requirement of this.requirements) {
      const { action } = requirement;
      if (action === "sleep") throw onlyInQuery("PG_SLEEP", place, requirement);
      if (action === "advisory-lock" && waitsForLock(requirement.name)) {
        throw onlyInQuery(requirement.name.toUpperCase(), place, requirement);
      }
    }
  }

  /**
   * Refuses functions that wait or lock in an expression of a definition, because many statements
   * evaluate it.
   *
   * @throws {DatabaseError} UNSUPPORTED_FEATURE
   */
  requireNoLock(place: string): void {
    this.requireNoWait(place);
    this.requireNoProgram(place);
    for (const requirement of this.requirements) {
      if (requirement.action !== "advisory-lock") continue;
      throw onlyInQuery(requirement.name.toUpperCase(), place, requirement);
    }
  }

  /**
   * Refuses calls to programs in places where no request could run them.
   *
   * @throws {DatabaseError} UNSUPPORTED_FEATURE
   */
  requireNoProgram(place: string): void {
    for (const requirement of this.requirements) {
      if (requirement.action !== "call-program") continue;
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot call function ${requirement.name} in ${place}: its body is not a single SQL query`,
        {
          position: requirement.position,
          hint: "rewrite the function as a single query with LANGUAGE sql",
        },
      );
    }
  }

  /**
   * Records that the current query refers to a named query that itself reads `height` levels of
   * named queries.
   */
  readTower(height: number): void {
    this.towerHeight = Math.max(this.towerHeight, height);
  }

  newColumn({ name, origin, type }: Omit<BoundColumn, "id">): BoundColumn {
    const id = this.#nextColumnId;
    this.#nextColumnId += 1;
    if (id > STATEMENT_COLUMNS_MAX) throw tooManyColumns();
    this.notePart();
    return { id, name, type: columnTypeOf(type), origin };
  }

  parameter(index: number, node: AstNode): BoundExpression {
    const type = this.parameterTypes[index - 1];
    this.usedParameters.add(index);
    if (type !== undefined) {
      const slot = { kind: "slot", type, slot: index - 1, isParameter: true } as const;
      return type.kind === "unknown" ? { ...slot, untyped: this.#untyped(index, node) } : slot;
    }
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${index}: the request passes ` +
        counted(this.parameterTypes.length, "parameter"),
      { position: node._location.start, hint: "pass a value for every parameter in params" },
    );
  }

  #untyped(index: number, node: AstNode): UntypedLiteral {
    const parameter = this.#untypedParameters.get(index) ?? { number: index, uses: 0 };
    this.#untypedParameters.set(index, parameter);
    parameter.uses += 1;
    return { position: node._location.start, reads: this.literals, parameter };
  }

  /**
   * Returns the slot of FILE('x'). File slots follow the parameters, one per name. Statements with
   * files are never normalised, so they have no lifted literals.
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
    { hint: "select fewer columns, or split the statement into several" },
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

/**
 * Collects the aggregates of a query block. An expression may contain aggregates only if its
 * context has such a sink.
 */
export interface AggregateSink {
  readonly aggregates: BoundAggregate[];
  /** The aggregate calls found so far, indexed so that equal calls are found again. */
  readonly known: EquivalenceClasses<BoundAggregate>;
  /**
   * The GROUPING calls of the block. Such a call makes the block a grouping block even if it has
   * no aggregates.
   */
  readonly groupings: { readonly args: readonly BoundExpression[]; readonly start: number }[];
}

/**
 * Collects the window calls of a query block. An expression may contain window calls only if its
 * context has such a sink.
 */
export interface WindowSink {
  readonly calls: BoundWindowCall[];
  /** The window calls found so far, indexed so that equal calls are found again. */
  readonly known: EquivalenceClasses<BoundWindowCall>;
  /**
   * The windows over which the calls run. Calls that read the same rows in the same order share a
   * window.
   */
  readonly orders: BoundWindow[];
  readonly knownOrders: EquivalenceClasses<BoundWindow>;
  /** The windows defined in the WINDOW clause, keyed by name. */
  readonly named: Map<string, NamedWindow>;
}

export interface NamedWindow {
  readonly window: BoundWindow;
  /** Whether the window definition has a frame. If so, other windows cannot extend it. */
  readonly hasFrame: boolean;
}

/**
 * Collects the table functions of a select list. An expression may contain table functions only if
 * its context has such a sink.
 */
export interface ExpansionSink {
  readonly calls: ExpansionCall[];
  /** The calls found so far, indexed so that equal calls are found again. */
  readonly known: EquivalenceClasses<ExpansionCall>;
}

export interface ExpansionCall {
  readonly made: BoundTableFunction;
  /** The columns through which a query reads the results of the call. */
  readonly columns: readonly BoundColumn[];
}

/** The context in which an expression is bound. */
export interface ExpressionContext {
  readonly statement: StatementBinding;
  readonly scope: Scope;
  /** The name of the clause for messages: "WHERE", "the select list" … */
  readonly clause: string;
  readonly sink: AggregateSink | undefined;
  readonly windows?: WindowSink | undefined;
  readonly expansions?: ExpansionSink | undefined;
  /** Whether the expression may contain FILE('x') even where no FILE value is required. */
  readonly allowsFiles?: boolean;
  /** The column that merge_action() reads; absent outside the RETURNING of a MERGE. */
  readonly mergeAction?: BoundColumn | undefined;
  /** Binds a query inside the expression; absent if the clause allows no queries. */
  readonly bindInner?: BindInner | undefined;
  /** Returns the user-defined functions with a given name; absent where `bindInner` is absent. */
  readonly routinesNamed?: ((name: QName) => readonly CallableRoutine[]) | undefined;
  /**
   * Returns the row type of the table with a given name, and records that the statement reads the
   * table; absent where `bindInner` is absent.
   */
  readonly rowTypeNamed?: ((name: QName) => DataType | undefined) | undefined;
  /** Resolves names that the scope does not contain. */
  readonly outer?: Correlation | undefined;
}

/** How names refer to the variables of a program. */
export interface VariableNames {
  /** How to resolve a name that is both a variable and a column. */
  readonly conflict: "column" | "error" | "variable";
  /** Returns the variable, or the field of a variable, to which a name refers in a context. */
  readonly named: (ref: ExprRef, outer: Correlation | undefined) => BoundExpression | undefined;
  /** Returns the error for a name that begins with a variable's name but cannot be resolved. */
  readonly faultOf: (ref: ExprRef, outer: Correlation | undefined) => DatabaseError | undefined;
}

/** A user-defined function, as a call sees it. */
export interface CallableRoutine {
  /** The name of the function, as "namespace.name". */
  readonly name: string;
  readonly routine: Routine;
  /** The defaults of the input parameters, in order. */
  readonly defaults: readonly (Expr | undefined)[];
  /** Returns the functions with a given name that the defaults can call. */
  readonly routinesNamed: ExpressionContext["routinesNamed"];
  /**
   * Binds the query of the function.
   * @param outer Resolves the names of the parameters.
   */
  readonly bindQuery: (outer: Correlation, node: AstNode) => BoundSelect;
  /** The entry of the function; absent while the function is being defined. */
  readonly entry?: FunctionEntry | undefined;
  /** Set if the body of the function is a program. */
  readonly program?: FunctionEntry | undefined;
  /** Records that the statement calls a program or an aggregate and needs the right to do so. */
  readonly enter?: (node: AstNode) => void;
}

/** The expression that encloses a query. The query may read values from it. */
export interface Correlation {
  /** The context in which the containing expression is bound. */
  readonly context: ExpressionContext;
  /**
   * Passes a value of the outer query to the inner one. Returns the expression through which the
   * inner query reads it.
   */
  referTo(value: BoundExpression): BoundExpression;
  /**
   * Returns a function that undoes every outer reference made after this call, at this level and at
   * all outer levels.
   */
  mark(): () => void;
}

/** Binds a query inside an expression. */
export type BindInner = (query: SelectStatement, outer: Correlation) => BoundSelect;

/** Binds an expression in its context. Parts of the binder call back through this function. */
export type Bind = (expression: Expr, context: ExpressionContext) => BoundExpression;

export function notAvailable(node: AstNode, what: string): DatabaseError {
  return new DatabaseError("UNSUPPORTED_FEATURE", `Cannot run ${what}: this is not available yet`, {
    position: node._location.start,
  });
}

export function unknownFunction(
  name: string,
  types: readonly DataType[],
  node: AstNode,
): DatabaseError {
  const signature = `${name}(${types.map((type) => typeName(type)).join(", ")})`;
  const isKnown = isBuiltIn(name) || name === "row_to_json";
  const omitted = isKnown ? undefined : omittedFeatureOf(name);
  if (omitted !== undefined) {
    return new DatabaseError("UNSUPPORTED_FEATURE", `Cannot call ${name}: ${omitted}`, {
      position: node._location.start,
    });
  }
  const what = isKnown
    ? "the function exists, but does not accept arguments of these types"
    : "no function has this name";
  const near = isKnown ? undefined : nearestName(name, knownFunctions());
  const hint =
    insteadOfFunction(name) ?? (near === undefined ? undefined : `did you mean ${near}?`);
  return new DatabaseError("FUNCTION_NOT_FOUND", `Cannot find function ${signature}: ${what}`, {
    position: node._location.start,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** SQL constructs that look like function calls. */
const CALL_FORMS: ReadonlySet<string> = new Set([
  "all",
  "any",
  "changes",
  "coalesce",
  "exists",
  "file",
  "grouping",
  "merge_action",
  "some",
]);

/** Whether there is a built-in function of any kind with this name. */
export function isBuiltIn(name: string): boolean {
  return (
    functionExists(name) ||
    isAggregate(name) ||
    isWindowName(name) ||
    isTableFunction(name) ||
    CALL_FORMS.has(name)
  );
}

function knownFunctions(): string[] {
  return [
    ...functionNames(),
    ...aggregateNames(),
    ...windowFunctionNames(),
    ...tableFunctionNames(),
  ];
}

function onlyInQuery(
  name: string,
  place: string,
  { position }: { readonly position: number },
): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot call ${name} in ${place}: it can be called only in a query`,
    {
      position,
      hint: `run SELECT ${name}(…) as a separate statement, in the same transaction if one is open`,
    },
  );
}
