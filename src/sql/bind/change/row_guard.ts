/**
 * Binds the conditions that policies impose on the rows written by a change.
 *
 * UPDATE, DELETE and MERGE find only rows that policies permit, because policies restrict the
 * target table like any other table in FROM. This file handles the remaining rows: new rows,
 * stored rows matched by ON CONFLICT or MERGE, and the parents to which rows refer. A parent
 * hidden from the caller counts as missing, because foreign keys would otherwise reveal which rows
 * exist.
 *
 * As in PostgreSQL, a row that an UPDATE writes or that RETURNING shows must also satisfy a policy
 * for SELECT.
 */
import { isPolicyFor } from "../../../auth/mod.ts";
import type { ForeignKeyEntry, PolicyCommand, TableEntry } from "../../../catalog/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import { relocated } from "../../parse/ast/tree_parts.ts";
import { parseExpression } from "../../parse/parser.ts";
import { nameText } from "../../parse/print/print_expressions.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { newRule, noteRows, type RuledTable, storedRule } from "../query/row_rules.ts";
import { queriesAround, type RelationSource } from "../query/select_deps.ts";
import { Scope } from "../scope.ts";
import type { DmlDeps, TargetView } from "./dml_target.ts";
import { boundView } from "./view_target.ts";

/** A policy condition that written rows must meet. */
export interface RowTest {
  /** The command whose policies impose the condition. */
  readonly command: Exclude<PolicyCommand, "all">;
  readonly condition: BoundExpression;
  /** The names of the policies that impose the condition; empty if a view imposes it. */
  readonly policies: readonly string[];
  /** The view whose WITH CHECK OPTION requires the condition; absent if policies require it. */
  readonly view?: string;
  /** Whether the view that requires the condition is a partition. */
  readonly isOfPartition?: boolean;
  /**
   * Whether the condition is also tested on proposed rows that ON CONFLICT prevents from being
   * inserted.
   */
  readonly isProposed?: boolean;
}

/**
 * A condition that is true if the caller may read the parent of a row, or if the row has no parent.
 */
export interface ParentTest {
  readonly key: ForeignKeyEntry;
  readonly parent: TableEntry;
  readonly condition: BoundExpression;
}

/** The conditions that rows written by a change must meet, bound over the columns of the table. */
export interface BoundGuard {
  readonly table: TableEntry;
  /** The table's columns, in declared order. */
  readonly columns: readonly BoundColumn[];
  /** Policy conditions on rows that an INSERT adds. */
  readonly inserted: readonly RowTest[];
  /** Policy conditions on rows that an UPDATE writes. */
  readonly updated: readonly RowTest[];
  /** Conditions on stored rows that ON CONFLICT or MERGE updates. */
  readonly replaced: readonly RowTest[];
  /** Policy conditions on rows that MERGE deletes. */
  readonly removed: readonly RowTest[];
  /** Conditions on the parent rows to which written rows refer. */
  readonly parents: readonly ParentTest[];
}

/** How a statement changes rows. This determines the commands whose policies apply. */
export interface GuardedChange {
  readonly table: TableEntry;
  readonly node: AstNode;
  readonly inserts?: boolean;
  readonly updates?: boolean;
  /** Whether the change may update stored rows that its query did not find, as an upsert does. */
  readonly replaces?: boolean;
  readonly removes?: boolean;
  /** Whether the change returns the rows that it writes. */
  readonly returns: boolean;
  /** The view through which the statement names the table. */
  readonly view?: TargetView | undefined;
}

/**
 * Returns the conditions on the rows that a change writes; undefined if neither policies nor a
 * view restrict the rows.
 */
export function bindGuard(change: GuardedChange, deps: DmlDeps): BoundGuard | undefined {
  const { node, table } = change;
  const { rights, statement } = deps;
  const hasRules = rights.policiesFor(table) !== undefined;
  const parents = (table.foreignKeys ?? []).flatMap((key) => {
    const parent = rights.tableById(key.tableId);
    return parent === undefined || rights.policiesFor(parent) === undefined ? [] : { key, parent };
  });
  if (!hasRules && parents.length === 0 && change.view === undefined) return undefined;
  const columns = table.columns.map(({ columnId, name, type }) =>
    statement.newColumn({ name, type, origin: { table, columnId } }),
  );
  const ruled: RuledTable = { table, columns, node };
  const isRead = change.returns ? [storedTest(ruled, "select", deps)] : [];
  const ofView = (command: RowTest["command"]): readonly RowTest[] =>
    change.view === undefined ? [] : viewTests(change.view, { command, deps, ruled });
  return {
    table,
    columns,
    inserted: testsIf(change.inserts, [
      newTest(ruled, "insert", deps),
      ...isRead,
      ...ofView("insert"),
    ]),
    updated: testsIf(change.updates, [
      newTest(ruled, "update", deps),
      storedTest(ruled, "select", deps),
      ...ofView("update"),
    ]),
    replaced: testsIf(change.replaces, [
      storedTest(ruled, "select", deps),
      storedTest(ruled, "update", deps),
    ]),
    removed: testsIf(change.removes, [storedTest(ruled, "delete", deps)]),
    parents: parents.map(({ key, parent }) => ({
      key,
      parent,
      condition: parentCondition(key, parent, { deps, ruled }),
    })),
  };
}

/**
 * Returns the conditions that the WITH CHECK OPTION of a view, and of the views on which it is
 * based, requires.
 */
function viewTests(
  { relation, triggered }: TargetView,
  { command, deps, ruled }: { command: RowTest["command"]; deps: DmlDeps; ruled: RuledTable },
): readonly RowTest[] {
  const { columns, node } = ruled;
  const binding = { deps, node, isCascaded: false, triggered };
  return boundView(relation, columns, binding).conditions.flatMap(
    ({ condition, isChecked, isOfPartition, view: name }) =>
      isChecked ? [{ command, condition, policies: [], view: name, isOfPartition }] : [],
  );
}

function testsIf(
  isAsked: boolean | undefined,
  tests: readonly (RowTest | undefined)[],
): readonly RowTest[] {
  return isAsked === true ? tests.flatMap((test) => test ?? []) : [];
}

function newTest(
  ruled: RuledTable,
  command: "insert" | "update",
  deps: DmlDeps,
): RowTest | undefined {
  const condition = newRule(ruled, command, deps);
  const policies = namesOf(ruled, command, deps);
  return condition && { command, condition, policies, isProposed: command === "insert" };
}

function storedTest(
  ruled: RuledTable,
  command: "delete" | "select" | "update",
  deps: DmlDeps,
): RowTest | undefined {
  const condition = storedRule(ruled, [command], deps);
  return condition && { command, condition, policies: namesOf(ruled, command, deps) };
}

function namesOf({ table }: RuledTable, command: PolicyCommand, { rights }: DmlDeps): string[] {
  const policies = rights.policiesFor(table) ?? [];
  return policies.filter((policy) => isPolicyFor(policy, command)).map(({ name }) => name);
}

/**
 * The alias of the referring row in the condition on its parent row. Users cannot create tables
 * with such names.
 */
const CHILD = "?child";
const PARENT = "?parent";

/** Binds `a IS NULL OR EXISTS (SELECT 1 FROM parent WHERE parent.key = a)`. */
function parentCondition(
  { columnIds, referencedIds }: ForeignKeyEntry,
  parent: TableEntry,
  { deps, ruled }: { readonly deps: DmlDeps; readonly ruled: RuledTable },
): BoundExpression {
  const { columns, node, table } = ruled;
  const own = columnIds.map((id) => `${nameText(CHILD)}.${columnNamed(table, id)}`);
  const pairs = referencedIds.map(
    (id, i) => `${nameText(PARENT)}.${columnNamed(parent, id)} = ${own[i]}`,
  );
  const from = `${nameText(parent.namespace)}.${nameText(parent.name)} AS ${nameText(PARENT)}`;
  const text = [
    ...own.map((column) => `${column} IS NULL`),
    `EXISTS (SELECT 1 FROM ${from} WHERE ${pairs.join(" AND ")})`,
  ].join(" OR ");
  const scope = new Scope([{ alias: CHILD, namespace: undefined, columns, systemColumns: [] }]);
  const source: RelationSource = {
    namespace: parent.namespace,
    table: () => parent,
    partsOf: () => undefined,
    systemView: () => undefined,
    view: () => undefined,
    functions: () => [],
  };
  // The caller may write rows that refer to a table even without the right to read that table.
  const rights = { ...deps.rights, needsRight: false };
  noteRows(parent, deps);
  const around = { ctes: undefined, outer: undefined, isOutermost: false };
  const inner = { ...deps, ...around, rights, source };
  return bindCondition(relocated(parseExpression(text), node._location), {
    statement: deps.statement,
    scope,
    clause: "a foreign key",
    sink: undefined,
    ...queriesAround(inner),
  });
}

function columnNamed({ columns }: TableEntry, id: number): string {
  return nameText(columns.find(({ columnId }) => columnId === id)?.name ?? "");
}
