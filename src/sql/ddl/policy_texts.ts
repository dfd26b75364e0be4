/**
 * Reads the conditions of a new policy: binds them once, and determines the tables and columns
 * that they need.
 *
 * A condition may read only SHARED tables, and its owner must have the right to read every row of
 * these tables. The rows of a USER table depend on the caller, and it would be unclear for which
 * user the policies of another RESTRICTED table apply.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type PolicyTable, shownKindOf, type TableEntry } from "../../catalog/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { plainSelect } from "../bind/bound_nodes.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { bindCondition } from "../bind/expression/expression_binder.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { expressionsIn } from "../bind/query/query_walk.ts";
import { policyContext } from "../bind/query/row_rules.ts";
import { bindInSteps } from "../bind/query/select_binder.ts";
import { everyRow } from "../bind/row_rights.ts";
import { childrenOf, isVolatile, sameExpression } from "../bind/walk.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { findTable } from "../names/table_names.ts";
import type { AstNode, Expr, ExprRef } from "../parse/ast/ast.ts";
import { holdsQuery } from "../parse/ast/query_nodes.ts";
import { isPart } from "../parse/ast/tree_parts.ts";
import { expressionToSql } from "../parse/print/print_queries.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import { watchOf } from "../prepare/statement_watch.ts";
import { hasEveryRow } from "../rights/row_policies.ts";
import { storedColumnsOf } from "./view_definitions.ts";

/** The user who defines a policy, and the namespace in which unqualified names are looked up. */
export interface PolicyCall {
  readonly principal: Principal;
  readonly namespace: string;
  readonly ledger: RequestLedger;
}

export type PolicyTextDeps = BindingDeps & ExecutionDeps;

/** The conditions of a policy as SQL, and the tables that they need. */
export interface PolicyTexts {
  readonly using?: string;
  readonly check?: string;
  readonly tables: readonly PolicyTable[];
}

/**
 * Reads the conditions of a policy.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, TABLE_NOT_FOUND, COLUMN_NOT_FOUND, …
 */
export function policyTexts(
  table: TableEntry,
  conditions: { readonly using: Expr | undefined; readonly check: Expr | undefined },
  { call, deps }: { readonly call: PolicyCall; readonly deps: PolicyTextDeps },
): PolicyTexts {
  const reading = new PolicyReading(table, call, deps);
  const using = conditions.using && reading.textOf(conditions.using);
  const check = conditions.check && reading.textOf(conditions.check);
  return {
    ...(using === undefined ? {} : { using }),
    ...(check === undefined ? {} : { check }),
    tables: reading.tables,
  };
}

/** A table that the conditions of a policy read, and the names by which they refer to it. */
interface ReadTable {
  readonly namespace: string;
  readonly name: string;
  readonly table: TableEntry;
}

class PolicyReading {
  readonly #table: TableEntry;
  readonly #call: PolicyCall;
  readonly #deps: PolicyTextDeps;
  readonly #read: ReadTable[] = [];
  readonly #bound: BoundExpression[] = [];

  constructor(table: TableEntry, call: PolicyCall, deps: PolicyTextDeps) {
    this.#table = table;
    this.#call = call;
    this.#deps = deps;
  }

  /**
   * Binds the condition of a policy. Returns its SQL, with the columns in comparisons fully
   * qualified.
   */
  textOf(written: Expr): string {
    const condition = withOwnColumns(written, this.#table);
    const { ledger, namespace } = this.#call;
    const statement = new StatementBinding([], { watch: watchOf(ledger, this.#deps) });
    const table = this.#table;
    const columns = table.columns.map(({ columnId, name, type }) =>
      statement.newColumn({ name, type, origin: { table, columnId } }),
    );
    const { catalog } = this.#deps;
    const source = {
      namespace,
      table: (name: { name: string; schema?: string | undefined }, node: AstNode) =>
        this.#tableNamed(name, node),
      partsOf: () => undefined,
      systemView: () => undefined,
      view: () => undefined,
      functions: () => [],
    };
    const context = policyContext(
      { namespace: table.namespace, name: table.name, columns },
      {
        statement,
        bindInSteps,
        source,
        rights: everyRow((tableId) => catalog.tableById(tableId)),
      },
    );
    const bound = bindCondition(condition, context);
    this.#check(bound, statement, written);
    this.#bound.push(bound);
    return expressionToSql(condition);
  }

  get tables(): readonly PolicyTable[] {
    const query = plainSelect({
      from: undefined,
      outputs: this.#bound.map((expression) => ({ name: "", expression })),
    });
    const used = storedColumnsOf(query);
    const { name, namespace } = this.#table;
    const named: readonly ReadTable[] = [{ namespace, name, table: this.#table }, ...this.#read];
    return named.map((each): PolicyTable => {
      const { columns, tableId } = each.table;
      return {
        tableId,
        namespace: each.namespace,
        name: each.name,
        columns: columns.map((column) => ({ columnId: column.columnId, name: column.name })),
        used: [...(used.get(tableId) ?? [])],
      };
    });
  }

  #tableNamed(
    { name, schema }: { name: string; schema?: string | undefined },
    node: AstNode,
  ): TableEntry {
    const { namespace: current, principal } = this.#call;
    const { catalog, systemViews } = this.#deps;
    const namespace = schema ?? current;
    const isView =
      systemViews.find(namespace, name) !== undefined ||
      catalog.view(namespace, name) !== undefined;
    if (isView) throw unreadable(`${namespace}.${name}`, "it is a view", node);
    const table = findTable(this.#deps, { name, schema }, { namespace: current, node, principal });
    if (table.kind !== "shared") {
      const kind = shownKindOf(table);
      throw unreadable(nameOf(table), `the rows of a ${kind} table depend on the reader`, node);
    }
    if (!hasEveryRow(principal, table, catalog)) {
      throw unreadable(nameOf(table), "policies hide some rows of this table from you", node);
    }
    const isKnown = this.#read.some((each) => each.namespace === namespace && each.name === name);
    if (!isKnown) this.#read.push({ namespace, name, table });
    return table;
  }

  /**
   * Refuses conditions that a policy must not have.
   * @throws {DatabaseError} INVALID_DEFINITION
   */
  #check(bound: BoundExpression, statement: StatementBinding, node: Expr): void {
    statement.requireNoLock("a policy");
    readLiterals(statement.literals);
    const invalid = (why: string, hint?: string): DatabaseError =>
      new DatabaseError("INVALID_DEFINITION", `Cannot define the policy: ${why}`, {
        position: node._location.start,
        ...(hint === undefined ? {} : { hint }),
      });
    if (statement.usedParameters.size > 0)
      throw invalid(
        "the conditions contain parameters",
        "replace the parameters with their values",
      );
    if (statement.files.length > 0) throw invalid("the conditions contain files");
    if (statement.pastReads.length > 0) {
      throw invalid(
        "the condition reads an earlier state of a table",
        "policies can read only the current state of a table",
      );
    }
    if (isVolatile(bound)) throw invalid("the condition calls a volatile function");
    if (comparesWithItself(bound)) {
      throw invalid(
        "the condition compares a column with itself",
        "give the table in the subquery an alias, and qualify the columns of " +
          `${nameOf(this.#table)} with that table's name`,
      );
    }
  }
}

function unreadable(name: string, why: string, node: AstNode): DatabaseError {
  return new DatabaseError("INVALID_DEFINITION", `Cannot read ${name} in a policy: ${why}`, {
    position: node._location.start,
    hint: "a policy may read only SHARED tables in which the policy's owner can see every row",
  });
}

/** Returns whether an expression, or a query inside it, compares a column with itself. */
function comparesWithItself(expression: BoundExpression): boolean {
  if (expression.kind === "compare" && expression.left.kind === "column") {
    if (sameExpression(expression.left, expression.right)) return true;
  }
  const { kind } = expression;
  const inner = kind === "subquery" ? expressionsIn(expression.subquery.query) : [];
  return [...childrenOf(expression), ...inner].some(comparesWithItself);
}

const COMPARISONS: ReadonlySet<string> = new Set(["=", "<>", "!=", "<", "<=", ">", ">="]);

/**
 * Qualifies names in a condition, so that `m.room = room` inside a query compares with the column
 * `room` of the policy's table. By the rules of SQL, `room` would mean `m.room`, and the
 * comparison would be true for every row.
 */
function withOwnColumns(condition: Expr, table: TableEntry): Expr {
  return ownColumnsIn(condition, table, false) as Expr;
}

function ownColumnsIn(part: unknown, table: TableEntry, isInQuery: boolean): unknown {
  if (Array.isArray(part)) return part.map((each) => ownColumnsIn(each, table, isInQuery));
  if (!isPart(part)) return part;
  const isInside = isInQuery || holdsQuery(part);
  const copy = Object.fromEntries(
    Object.entries(part).map(([key, value]) => [key, ownColumnsIn(value, table, isInside)]),
  );
  const { left, op, right, type }: ComparisonPart = copy;
  if (!isInQuery || type !== "binary" || typeof op !== "string" || !COMPARISONS.has(op))
    return copy;
  if (!isReference(left) || !isReference(right)) return copy;
  return {
    ...copy,
    left: ownColumn(left, right, table) ?? left,
    right: ownColumn(right, left, table) ?? right,
  };
}

interface ComparisonPart {
  readonly type?: unknown;
  readonly op?: unknown;
  readonly left?: unknown;
  readonly right?: unknown;
}

function isReference(part: unknown): part is ExprRef {
  return isPart(part) && "type" in part && part.type === "ref";
}

function ownColumn(ref: ExprRef, other: ExprRef, table: TableEntry): ExprRef | undefined {
  const isMeant =
    ref.table === undefined &&
    other.table !== undefined &&
    other.name === ref.name &&
    other.table.name !== table.name &&
    table.columns.some(({ name }) => name === ref.name);
  if (!isMeant) return undefined;
  return { ...ref, table: { name: table.name, _location: ref._location } };
}
