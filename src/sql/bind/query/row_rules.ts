/**
 * Binds the policies of a table as conditions on its rows.
 *
 * The condition on the rows that a statement reads becomes part of the table in FROM, so it
 * applies wherever the table is used: in a join, in a view, or in a subquery. The conditions on
 * rows that a statement writes are tested when the rows are known (`change/row_guard.ts`).
 *
 * A policy is bound again for each statement, over the columns of the table in that statement. The
 * policy's SQL keeps its meaning: it uses the table and column names that were valid when the
 * policy was written, and it cannot use names from the surrounding statement.
 */
import { isPolicyFor } from "../../../auth/mod.ts";
import { DatabaseError } from "../../../base/errors.ts";
import {
  accessLevelOf,
  type ColumnEntry,
  type PolicyCommand,
  type PolicyEntry,
  type PolicyTable,
  type TableEntry,
} from "../../../catalog/mod.ts";
import { BOOLEAN } from "../../../types/mod.ts";
import type { AstNode, Expr } from "../../parse/ast/ast.ts";
import { relocated } from "../../parse/ast/tree_parts.ts";
import { parseExpression } from "../../parse/parser.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { typesOf, withTypes } from "../expression/type_names.ts";
import { everyRow, type RowRights } from "../row_rights.ts";
import { Scope, type ScopeRelation } from "../scope.ts";
import { conjunctionOf } from "../walk.ts";
import { queriesAround, type RelationSource, type SelectDeps } from "./select_deps.ts";

/** The table whose policies are bound, and its columns in the statement. */
export interface RuledTable {
  readonly table: TableEntry;
  /** The columns of the statement that each originate from a column of the table. */
  readonly columns: readonly BoundColumn[];
  /**
   * The syntax node that refers to the table. Errors in the policies are reported at the node's
   * position.
   */
  readonly node: AstNode;
}

type RuleDeps = Pick<SelectDeps, "bindInSteps" | "rights" | "statement">;

/**
 * Records that a statement reads or writes rows of a table, and under which policies the statement
 * is planned. A caller to whom other policies apply cannot use the plan.
 */
export function noteRows(table: TableEntry, { rights, statement }: RuleDeps): void {
  if (accessLevelOf(table) !== "RESTRICTED") return;
  const { viewOwner } = rights;
  const policies = rights.policiesFor(table);
  statement.requirements.push({ action: "rows", table, policies, viewOwner });
}

/**
 * Returns the condition that stored rows must meet under the policies for all of the given
 * commands; undefined if every row qualifies.
 */
export function storedRule(
  ruled: RuledTable,
  commands: readonly Exclude<PolicyCommand, "all" | "insert">[],
  deps: RuleDeps,
): BoundExpression | undefined {
  const policies = deps.rights.policiesFor(ruled.table);
  if (policies === undefined) return undefined;
  return conjunctionOf(
    commands.flatMap((command) => {
      const permitting = policies.filter((policy) => isPolicyFor(policy, command));
      return permitted(ruled, permitting.map(usingOf), deps) ?? [];
    }),
  );
}

/** Returns the condition that policies impose on new rows; undefined if every row qualifies. */
export function newRule(
  ruled: RuledTable,
  command: "insert" | "update",
  deps: RuleDeps,
): BoundExpression | undefined {
  const policies = deps.rights.policiesFor(ruled.table);
  if (policies === undefined) return undefined;
  const permitting = policies.filter((policy) => isPolicyFor(policy, command));
  return permitted(ruled, permitting.map(checkOf), deps);
}

/** A condition of a policy, as SQL. */
interface PolicyText {
  readonly policy: PolicyEntry;
  readonly sql: string | undefined;
}

function usingOf(policy: PolicyEntry): PolicyText {
  return { policy, sql: policy.using };
}

function checkOf(policy: PolicyEntry): PolicyText {
  return { policy, sql: policy.check ?? policy.using };
}

/**
 * Combines the conditions of several policies with OR, because a single policy is enough to permit
 * a row.
 */
function permitted(
  ruled: RuledTable,
  texts: readonly PolicyText[],
  deps: RuleDeps,
): BoundExpression | undefined {
  const operands: BoundExpression[] = [];
  for (const { policy, sql } of texts) {
    if (sql === undefined) continue;
    const condition = boundText(policy, sql, { ...deps, ruled });
    if (condition.kind === "constant" && condition.value === true) return undefined;
    operands.push(condition);
  }
  const [first] = operands;
  if (first === undefined) return { kind: "constant", type: BOOLEAN, value: false };
  return operands.length === 1 ? first : { kind: "or", type: BOOLEAN, operands };
}

/**
 * Binds the SQL of a policy.
 * @throws {DatabaseError} The errors in the SQL.
 */
function boundText(
  policy: PolicyEntry,
  sql: string,
  { bindInSteps, rights, ruled, statement }: RuleDeps & { readonly ruled: RuledTable },
): BoundExpression {
  const [own, ...others] = policy.tables;
  const entries = others.flatMap(({ tableId }) => rights.tableById(tableId) ?? []);
  const columns = [ruled.table, ...entries].flatMap((table) => table.columns);
  const node = withTypes(relocated(parsed(policy, sql), ruled.node._location), typesOf(columns));
  const context = policyContext(
    {
      name: own?.name ?? "",
      namespace: own?.namespace,
      columns: namedAsIn(own, ruled.columns),
    },
    {
      statement,
      bindInSteps,
      rights: everyRow((tableId) => rights.tableById(tableId)),
      source: sourceIn(policy, rights),
    },
  );
  return bindCondition(node, context);
}

/**
 * Returns the context in which the SQL of a policy is bound. It contains the columns of the
 * policy's table, and resolves other names through `source`.
 */
export function policyContext(
  table: Pick<ScopeRelation, "columns" | "namespace"> & { readonly name: string },
  place: Pick<SelectDeps, "bindInSteps" | "rights" | "source" | "statement">,
): ExpressionContext {
  const { columns, name: alias, namespace } = table;
  return {
    statement: place.statement,
    scope: new Scope([{ alias, namespace, columns, systemColumns: [] }]),
    clause: "a policy",
    sink: undefined,
    ...queriesAround({ ...place, isOutermost: false, keepsUntyped: false }),
  };
}

const trees = new WeakMap<PolicyEntry, Map<string, Expr>>();

function parsed(policy: PolicyEntry, sql: string): Expr {
  const known = trees.get(policy) ?? new Map<string, Expr>();
  trees.set(policy, known);
  const tree = known.get(sql) ?? parseExpression(sql);
  known.set(sql, tree);
  return tree;
}

/** Returns the columns that the SQL of a policy can read, under the names that the SQL uses. */
function namedAsIn(own: PolicyTable | undefined, columns: readonly BoundColumn[]): BoundColumn[] {
  return (own?.columns ?? []).flatMap(({ columnId, name }) => {
    const column = columns.find(({ origin }) => origin?.columnId === columnId);
    return column === undefined ? [] : [{ ...column, name }];
  });
}

/** Returns the source that resolves the table names in the SQL of a policy. */
function sourceIn({ searchNamespace, tables }: PolicyEntry, rights: RowRights): RelationSource {
  return {
    namespace: searchNamespace,
    partsOf: () => undefined,
    table: ({ name, schema = searchNamespace }, node) => {
      const known = tables.find((each) => each.namespace === schema && each.name === name);
      const table = known === undefined ? undefined : rights.tableById(known.tableId);
      if (table === undefined || known === undefined) throw missing(name, node);
      return { ...table, columns: columnsThen(table, known) };
    },
    systemView: () => undefined,
    view: () => undefined,
    functions: () => [],
  };
}

/** Returns the columns that a table had when the policy was written and still has. */
function columnsThen({ columns }: TableEntry, { columns: then }: PolicyTable): ColumnEntry[] {
  return then.flatMap(({ columnId, name }) => {
    const column = columns.find((each) => each.columnId === columnId);
    return column === undefined ? [] : [{ ...column, name }];
  });
}

function missing(name: string, node: AstNode): DatabaseError {
  return new DatabaseError(
    "TABLE_NOT_FOUND",
    `Cannot apply the row policy: it reads the table ${name}, which no longer exists`,
    { position: node._location.start },
  );
}
