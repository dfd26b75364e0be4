/**
 * Resolves an inner query's references to names of an outer query.
 *
 * A query inside an expression reads values of the enclosing row through outer references: the
 * expression passes these values to the query at each evaluation. A name from two levels out first
 * becomes an outer reference of the query in between, so an inner query depends only on its own
 * outer references.
 */

import { defined } from "../../../base/assert.ts";
import { counted } from "../../../base/counted.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { AstNode, ExprRef } from "../../parse/ast/ast.ts";
import type { Correlation, ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundExpression, OuterReference } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { ExpressionPlaces } from "../equivalence.ts";
import { fieldsOfValue, presenceColumn } from "../expression/row_values.ts";
import { Scope, type ScopeRelation } from "../scope.ts";

/** Collects the values that one inner query reads from the enclosing expression. */
export class OuterReferences implements Correlation {
  readonly context: ExpressionContext;
  readonly list: OuterReference[] = [];
  /** The position of each outer value in the list of values that is passed to the query. */
  #places = new ExpressionPlaces();

  constructor(context: ExpressionContext) {
    this.context = context;
  }

  referTo(value: BoundExpression): BoundExpression {
    const place = this.#places.find(value);
    const known = place === undefined ? undefined : this.list[place];
    if (known !== undefined) return { kind: "outer", type: value.type, id: known.id };
    const { id } = this.context.statement.newColumn({ name: "", type: value.type });
    this.list.push({ id, value });
    this.#places.add(value);
    return { kind: "outer", type: value.type, id };
  }

  mark(): () => void {
    const { length } = this.list;
    const undoOuter = this.context.outer?.mark();
    return () => {
      this.list.length = length;
      this.#places = new ExpressionPlaces(this.list.map(({ value }) => value));
      undoOuter?.();
    };
  }
}

/**
 * The context of a query that is declared in one query and read in an inner query, such as a WITH
 * entry. Names are resolved where the query is declared, and the values are passed on to the place
 * where it is read.
 */
export class PassedOn implements Correlation {
  readonly declared: Correlation;
  readonly #read: Correlation;

  /**
   * Creates the context of a query that is declared in one context and read in another.
   *
   * @param read The context in which the query is read, inside the query to which `declared`
   *   belongs.
   */
  constructor(declared: Correlation, read: Correlation) {
    this.declared = declared;
    this.#read = read;
  }

  get context(): ExpressionContext {
    return this.declared.context;
  }

  referTo(value: BoundExpression): BoundExpression {
    return this.handOn(this.declared.referTo(value));
  }

  mark(): () => void {
    const undoDeclared = this.declared.mark();
    const undoRead = this.#read.mark();
    return () => {
      undoDeclared();
      undoRead();
    };
  }

  /** Returns the expression through which the inner query reads a value of the declaring query. */
  handOn(value: BoundExpression): BoundExpression {
    return handed(value, this.declared, this.#read);
  }
}

/** An argument of a function, as the function's query reads it. */
export interface RoutineArgument {
  readonly name: string | undefined;
  /** Returns the value as an expression in the outermost block of the function's query. */
  readonly value: () => BoundExpression;
}

/**
 * The context of a function's query. It contains only the parameters, because a function must not
 * see the columns of the calling query.
 */
export class RoutineArguments implements Correlation {
  readonly context: ExpressionContext;
  readonly #name: string;
  readonly #arguments: readonly RoutineArgument[];
  readonly #mark: () => () => void;

  /**
   * @param options.name The name of the function. Its query may use the name to qualify a
   *   parameter.
   * @param options.mark See {@linkcode Correlation.mark}.
   */
  constructor(
    statement: StatementBinding,
    options: {
      readonly name: string;
      readonly args: readonly RoutineArgument[];
      readonly mark: () => () => void;
    },
  ) {
    this.context = { statement, scope: new Scope([]), clause: "a function", sink: undefined };
    this.#name = options.name;
    this.#arguments = options.args;
    this.#mark = options.mark;
  }

  /**
   * Returns the value to which `name`, `function.name`, `name.field` or `function.name.field`
   * refers.
   */
  find({ name, star, table }: ExprRef): BoundExpression | undefined {
    if (star === true) return undefined;
    if (table === undefined) return this.#named(name);
    if (table.schema === undefined && table.name === this.#name) {
      const found = this.#named(name);
      if (found !== undefined) return found;
    }
    if (table.schema !== undefined && table.schema !== this.#name) return undefined;
    const row = this.#named(table.name);
    if (row === undefined) return undefined;
    return fieldsOfValue(row)?.find((field) => field.name === name)?.expression;
  }

  #named(wanted: string): BoundExpression | undefined {
    return this.#arguments.find(({ name }) => name === wanted)?.value();
  }

  /**
   * Returns the value of the parameter `$index`.
   * @throws {DatabaseError} INVALID_PARAMETER
   */
  at(index: number, node: AstNode): BoundExpression {
    const found = this.#arguments[index - 1];
    if (found !== undefined) return found.value();
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind $${index}: the function has ${counted(this.#arguments.length, "parameter")}`,
      { position: node._location.start },
    );
  }

  referTo(value: BoundExpression): BoundExpression {
    return value;
  }

  mark(): () => void {
    return this.#mark();
  }
}

/** The variables of a program, as the SQL inside the program reads them. */
export interface ProgramVariables {
  find(ref: ExprRef): BoundExpression | undefined;
  /**
   * Returns the error for a name that begins with the name of a variable but cannot be resolved.
   */
  faultOf(ref: ExprRef): DatabaseError | undefined;
  /**
   * Returns the value of the parameter `$index`.
   * @throws {DatabaseError} INVALID_PARAMETER
   */
  at(index: number, node: AstNode): BoundExpression;
}

/** The context of the SQL inside a program. */
export class VariableArguments extends RoutineArguments {
  readonly #variables: ProgramVariables;

  constructor(statement: StatementBinding, variables: ProgramVariables) {
    super(statement, { name: "", args: [], mark: () => () => undefined });
    this.#variables = variables;
  }

  override find(ref: ExprRef): BoundExpression | undefined {
    return this.#variables.find(ref);
  }

  override at(index: number, node: AstNode): BoundExpression {
    return this.#variables.at(index, node);
  }

  faultOf(ref: ExprRef): DatabaseError | undefined {
    return this.#variables.faultOf(ref);
  }
}

/**
 * Returns the error for a name in a program that begins with the name of a variable but cannot be
 * resolved; undefined for any other name.
 */
export function variableFault(
  ref: ExprRef,
  outer: Correlation | undefined,
): DatabaseError | undefined {
  const declared = declaredOf(outer);
  if (declared === undefined) return undefined;
  if (declared instanceof VariableArguments) return declared.faultOf(ref);
  return variableFault(ref, declared.context.outer);
}

/** Returns the program variable to which a name refers; undefined outside programs. */
export function variableNamed(
  ref: ExprRef,
  outer: Correlation | undefined,
): BoundExpression | undefined {
  return argumentIn(outer, (args) =>
    args instanceof VariableArguments ? args.find(ref) : undefined,
  );
}

/**
 * Returns the value of the parameter `$index` of the function to which a query belongs; undefined
 * outside functions.
 */
export function argumentAt(
  index: number,
  node: AstNode,
  outer: Correlation | undefined,
): BoundExpression | undefined {
  return argumentIn(outer, (args) => args.at(index, node));
}

/** Returns the named argument of the function to which a query belongs, as the query reads it. */
function argumentIn(
  outer: Correlation | undefined,
  find: (args: RoutineArguments) => BoundExpression | undefined,
): BoundExpression | undefined {
  if (outer === undefined) return undefined;
  if (outer instanceof RoutineArguments) return find(outer);
  const isPassedOn = outer instanceof PassedOn;
  const value = argumentIn(isPassedOn ? outer.declared : outer.context.outer, find);
  if (value === undefined || value.kind === "constant" || value.kind === "slot") return value;
  return isPassedOn ? outer.handOn(value) : outer.referTo(value);
}

/**
 * Returns the context in which a query was declared, given the context `outer` in which it is
 * read.
 */
export function declaredOf(outer: Correlation | undefined): Correlation | undefined {
  return outer instanceof PassedOn ? declaredOf(outer.declared) : outer;
}

/**
 * Returns the expression through which a query in the context `to` reads a value of the context
 * `from`.
 */
function handed(value: BoundExpression, from: Correlation, to: Correlation): BoundExpression {
  if (from === to) return value;
  if (to instanceof PassedOn) return to.handOn(handed(value, from, to.declared));
  const around = defined(
    to.context.outer,
    "correlated reference: inner query has no enclosing query",
  );
  return to.referTo(handed(value, from, around));
}

/** Returns the relation to which `t.*` refers in the nearest enclosing query that contains it. */
export function outerRelation(
  table: NonNullable<ExprRef["table"]>,
  outer: Correlation | undefined,
): ScopeRelation | undefined {
  if (outer === undefined) return undefined;
  const { context } = outer;
  return context.scope.relationNamed(table) ?? outerRelation(table, context.outer);
}

/**
 * Resolves a name that is unknown in the query itself. Returns undefined if no enclosing query
 * contains the name.
 */
export function resolveOuter(
  ref: ExprRef,
  outer: Correlation | undefined,
): BoundExpression | undefined {
  if (outer === undefined) return undefined;
  if (declaredOf(outer) instanceof RoutineArguments) {
    return argumentIn(outer, (args) => args.find(ref));
  }
  const { context } = outer;
  const tableOid = context.scope.tableOid(ref, (relation) =>
    columnValue(presenceColumn(relation, context.statement)),
  );
  const column = tableOid === undefined ? context.scope.lookup(ref) : undefined;
  const value: BoundExpression | undefined =
    tableOid ?? (column === undefined ? resolveOuter(ref, context.outer) : columnValue(column));
  // Constants and slots have the same value everywhere, so they do not have to be passed on.
  if (value === undefined || value.kind === "constant" || value.kind === "slot") return value;
  return outer.referTo(value);
}
