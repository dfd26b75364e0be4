/**
 * Binds the SQL in programs. Each variable is a slot, so the values of a call are the slots of all
 * its statements.
 *
 * The bound form of an SQL statement or expression is stored with it. It is valid for one version
 * of the catalog, for callers to whom the same policies apply, and for one type of each record.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { runToCompletion } from "../../base/steps.ts";
import type { Catalog } from "../../catalog/mod.ts";
import { type DataType, sameType, TEXT, type Value } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { plainSelect } from "../bind/bound_nodes.ts";
import type { CursorReading } from "../bind/change/cursor_rows.ts";
import { bindExpression } from "../bind/expression/expression_binder.ts";
import { fieldsOfValue } from "../bind/expression/row_values.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import {
  type ProgramVariables,
  VariableArguments,
  variableFault,
  variableNamed,
} from "../bind/query/correlation.ts";
import { type CteList, queriesAround, type SelectDeps } from "../bind/query/select_deps.ts";
import { Scope } from "../bind/scope.ts";
import { hasSubquery } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type { AstNode, Expr, ExprRef, QueryStatement, Statement } from "../parse/ast/ast.ts";
import { callQuery, isQueryNode } from "../parse/ast/query_nodes.ts";
import { rewritten } from "../parse/ast/tree_parts.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { Typed } from "../procedural/asks.ts";
import { noField, type ProgramFrame } from "../procedural/frame.ts";
import { findName, partsOfRef } from "../procedural/names.ts";
import type { SqlPiece, ValuePiece, VisibleName } from "../procedural/tree.ts";
import { CellRows } from "../result/result.ts";
import { authorize, hasSameRows, meetsAll } from "../rights/requirements.ts";
import { type BindingDeps, dmlDepsOf, statisticsOf } from "./binding_deps.ts";
import { expressionWithoutCalls, type HoistedCall } from "./hoisted_calls.ts";
import {
  boundFor,
  boundInSteps,
  type Prepared,
  preparedQuery,
  prepareInSteps,
} from "./prepared.ts";

export type PieceDeps = BindingDeps & Pick<SqlEnvironment, "store">;

/** The caller of a program, and the namespace in which the program looks up names. */
export interface PiecePlace {
  readonly deps: PieceDeps;
  readonly principal: Principal;
  readonly namespace: string;
  /** The transition tables of the trigger for which the program runs. */
  readonly ctes?: CteList | undefined;
}

/** A bound expression that needs no query. */
export interface BoundValue {
  readonly kind: "value";
  readonly type: DataType;
  readonly calls: readonly HoistedCall[];
  readonly evaluate: (context: ExecutionContext) => Value;
  readonly requirements: Prepared["requirements"];
}

export interface BoundRowsPiece {
  readonly kind: "rows";
  /** The prepared statement. The cells of its rows are plain values. */
  readonly prepared: Prepared;
  /** The columns of the returned rows; undefined if the statement returns no rows. */
  readonly columns: readonly { readonly name: string; readonly type: DataType }[] | undefined;
  readonly requirements: Prepared["requirements"];
}

export type BoundPiece = BoundRowsPiece | BoundValue;

interface KeptPiece {
  readonly catalog: Catalog;
  readonly version: number;
  readonly ctes: CteList | undefined;
  readonly types: readonly DataType[];
  readonly isCursor: boolean;
  readonly bound: BoundPiece;
}

const kept = new WeakMap<object, KeptPiece>();

/**
 * Returns the bound form of an SQL statement or expression of a program, after checking the
 * caller's rights.
 *
 * @param isCursor Whether a cursor reads the rows of the statement.
 * @throws {DatabaseError}
 */
export function boundPiece(
  piece: SqlPiece,
  frame: ProgramFrame,
  place: PiecePlace,
  isCursor = false,
): BoundPiece {
  const { principal } = place;
  const { catalog } = place.deps;
  const known = kept.get(piece);
  const isCurrent =
    known !== undefined &&
    known.catalog === catalog &&
    known.version === catalog.version &&
    known.ctes === place.ctes &&
    known.isCursor === isCursor &&
    haveSameTypes(known.types, frame) &&
    hasSameRows(known.bound.requirements, principal, catalog) &&
    meetsAll(known.bound.requirements, principal, catalog);
  if (isCurrent) return known.bound;
  const { version } = catalog;
  const bound = newlyBound(piece, frame, { place, isCursor });
  authorize(bound.requirements, principal, catalog);
  const { ctes } = place;
  kept.set(piece, { catalog, version, ctes, types: [...frame.types], isCursor, bound });
  return bound;
}

function haveSameTypes(types: readonly DataType[], frame: ProgramFrame): boolean {
  return types.every((type, slot) => {
    const now = frame.types[slot];
    return now === type || (now !== undefined && sameNamedType(type, now));
  });
}

/** Whether two types are the same, including the field names of row types. */
function sameNamedType(left: DataType, right: DataType): boolean {
  if (left.kind !== "row" || right.kind !== "row") return sameType(left, right);
  return (
    left.fields.length === right.fields.length &&
    left.fields.every((field, i) => {
      const other = right.fields[i];
      return other?.name === field.name && sameNamedType(field.type, other.type);
    })
  );
}

function newlyBound(
  piece: SqlPiece,
  frame: ProgramFrame,
  { isCursor, place }: { readonly isCursor: boolean; readonly place: PiecePlace },
): BoundPiece {
  if (piece.kind === "expression") {
    return boundExpressionPiece(piece.node, { frame, names: piece.names, place });
  }
  const { names, node } = piece;
  const query = node.type === "call procedure" ? callQuery(node) : node;
  if (!isQueryNode(query)) throw new TypeError("program body: SQL neither reads nor writes rows");
  const cursor = isCursor ? { locked: undefined } : undefined;
  return boundRows(query, { frame, names, place, cursor });
}

/** The variables to which an SQL statement or expression of a program can refer. */
export interface PieceScope {
  readonly frame: ProgramFrame;
  readonly names: VisibleName | undefined;
  readonly place: PiecePlace;
  /** How a cursor reads the rows of the statement; absent if no cursor does. */
  readonly cursor?: CursorReading | undefined;
}

interface OpenPiece {
  readonly statement: StatementBinding;
  readonly deps: ReturnType<typeof dmlDepsOf> & SelectDeps;
}

function opened({ frame, names, place }: PieceScope): OpenPiece {
  const { deps, namespace, principal } = place;
  const statement = new StatementBinding(frame.types, { statistics: statisticsOf(deps) });
  statement.variables = {
    conflict: frame.compiled.body.conflict,
    named: variableNamed,
    faultOf: variableFault,
  };
  const outer = new VariableArguments(statement, variablesOf(frame, names));
  const dml = dmlDepsOf(deps, { namespace, principal, statement });
  return { statement, deps: { ...dml, isOutermost: false, outer, ctes: place.ctes } };
}

function variablesOf(frame: ProgramFrame, names: VisibleName | undefined): ProgramVariables {
  const slotValue = (slot: number): BoundExpression => {
    const type = frame.types[slot] ?? TEXT;
    return { kind: "slot", type, slot, isParameter: true };
  };
  return {
    find: (ref) => {
      const found = findName(partsOfRef(ref), names);
      if (found === undefined) return undefined;
      let value: BoundExpression | undefined = slotValue(found.slot);
      for (const name of found.fields) {
        value = fieldsOfValue(value)?.find((field) => field.name === name)?.expression;
        if (value === undefined) return undefined;
      }
      return value;
    },
    faultOf: (ref) => {
      const found = findName(partsOfRef(ref), names);
      const type = found && frame.types[found.slot];
      if (found === undefined || type?.kind !== "row") return undefined;
      return noField(frame.nameOf(found.slot), found.fields[0] ?? "", type);
    },
    at: (index, node) => {
      const found = findName([`$${index}`], names);
      if (found !== undefined) return slotValue(found.slot);
      throw noParameter(index, node);
    },
  };
}

function noParameter(index: number, { _location }: AstNode): DatabaseError {
  return new DatabaseError(
    "INVALID_PARAMETER",
    `Cannot bind $${index}: the function has no such parameter`,
    { position: _location.start },
  );
}

function boundExpressionPiece(node: Expr, scope: PieceScope): BoundPiece {
  const { place } = scope;
  const { deps, statement } = opened(scope);
  const { catalog } = place.deps;
  const { namespace, principal } = place;
  withTypes({ node }, typesIn(catalog, namespace));
  const bound = boundFor({ catalog, principal, statement }, () =>
    bindExpression(node, {
      statement,
      scope: new Scope([]),
      clause: "an expression",
      sink: undefined,
      ...queriesAround(deps),
    }),
  );
  const { requirements } = statement;
  if (!hasSubquery(bound)) {
    const { calls, expression } = expressionWithoutCalls(bound, statement);
    readLiterals(statement.literals);
    return {
      kind: "value",
      type: bound.type,
      calls,
      evaluate: compileScalar(expression),
      requirements,
    };
  }
  const select = plainSelect({ from: undefined, outputs: [{ name: "value", expression: bound }] });
  return rowsPiece(runToCompletion(preparedQuery(select, statement)));
}

function boundRows(node: QueryStatement, scope: PieceScope): BoundRowsPiece {
  const { cursor, frame, names, place } = scope;
  const { deps, statement } = opened(scope);
  const written = withRowsWritten(node, { frame, names });
  withTypes(written, typesIn(place.deps.catalog, place.namespace));
  const { catalog } = place.deps;
  const { principal } = place;
  const steps = prepareInSteps(written, { cursor, deps, statement });
  return rowsPiece(runToCompletion(boundInSteps({ catalog, principal, statement }, steps)));
}

/** Binds the query inside a statement such as SELECT … FOR UPDATE. */
export function boundInner(node: QueryStatement, scope: PieceScope): BoundRowsPiece {
  const bound = boundRows(node, scope);
  authorize(bound.requirements, scope.place.principal, scope.place.deps.catalog);
  return bound;
}

/** Binds the SQL passed to EXECUTE, which cannot refer to variables. */
export function boundText(
  node: QueryStatement,
  using: readonly Typed[],
  { ctes, deps, namespace, principal }: PiecePlace,
  cursor?: CursorReading,
): BoundRowsPiece {
  const statement = new StatementBinding(
    using.map(({ type }) => type),
    { statistics: statisticsOf(deps) },
  );
  const { catalog } = deps;
  withTypes(node, typesIn(catalog, namespace));
  const dml = dmlDepsOf(deps, { namespace, principal, statement });
  const inner = { ...dml, isOutermost: false, ctes };
  const steps = prepareInSteps(node, { cursor, deps: inner, statement });
  const bound = rowsPiece(runToCompletion(boundInSteps({ catalog, principal, statement }, steps)));
  authorize(bound.requirements, principal, catalog);
  return bound;
}

function rowsPiece(prepared: Prepared): BoundRowsPiece {
  const { cells, fields, requirements } = prepared;
  readLiterals(prepared.literals);
  const plain = new CellRows(cells.types, () => (value) => value);
  return {
    kind: "rows",
    prepared: { ...prepared, cells: plain },
    columns: fields?.map(({ name }, i) => ({ name, type: cells.types[i] ?? TEXT })),
    requirements,
  };
}

/** Expands `r.*` in the rows of VALUES into its single fields. */
function withRowsWritten<Node extends Statement>(
  node: Node,
  { frame, names }: Pick<PieceScope, "frame" | "names">,
): Node {
  return rewritten(node, (part) => {
    if (!("type" in part) || part.type !== "values" || !("values" in part)) return part;
    const { values } = part as { readonly values: readonly (readonly Expr[])[] };
    const expanded = values.map((row) => row.flatMap((each) => fieldsWritten(each, frame, names)));
    return { ...part, values: expanded };
  });
}

function fieldsWritten(node: Expr, frame: ProgramFrame, names: VisibleName | undefined): Expr[] {
  if (node.type !== "ref" || node.star !== true || node.table === undefined) return [node];
  const found = findName(partsOfRef(node), names);
  const type = found && frame.types[found.slot];
  if (type?.kind !== "row") return [node];
  const { _location, table } = node;
  return type.fields.map(({ name }): ExprRef => ({ type: "ref", table, name, _location }));
}

/** Returns the single value of a query used as an expression. @throws {DatabaseError} */
export function onlyValue(
  { columns = [] }: Pick<BoundRowsPiece, "columns">,
  rows: readonly (readonly unknown[])[],
  piece: ValuePiece,
): Typed {
  if (columns.length !== 1) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot evaluate ${piece.text.slice(0, 100)}: it returns ${columns.length} columns, but ` +
        "must return one",
      { sqlstate: "42601" },
    );
  }
  if (rows.length > 1) {
    throw new DatabaseError(
      "CARDINALITY_VIOLATION",
      `Cannot evaluate ${piece.text.slice(0, 100)}: its query returned more than one row`,
      { sqlstate: "21000" },
    );
  }
  return { type: columns[0]?.type ?? TEXT, value: (rows[0]?.[0] ?? null) as Value };
}
