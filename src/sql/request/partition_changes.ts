/**
 * Runs the statements that move or delete rows of partitions: ATTACH PARTITION, DETACH PARTITION
 * and DROP TABLE of a partition. Definitions and rows change in one commit.
 *
 * Outside a transaction, other statements that write to the tables wait until the change is done.
 * A statement that began to write earlier may still commit first; the change is then repeated.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type PartitionViewEntry, shownColumnsOf, type TableEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import {
  attachedTable,
  detachedPartition,
  movedName,
  refuseReferred,
} from "../ddl/moved_partitions.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { partitionsOf, rowsCondition } from "../names/partitions.ts";
import type {
  AstNode,
  AttachPartitionStatement,
  DeleteStatement,
  DetachPartitionStatement,
  DropTableStatement,
  InsertStatement,
  Statement,
} from "../parse/ast/ast.ts";
import { relocated } from "../parse/ast/tree_parts.ts";
import { PARSE_LIMITS, parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";
import { hasEveryRow } from "../rights/row_policies.ts";
import type { DefiningStatement } from "../rights/statement_kinds.ts";

/** The operations of a request that are needed to change partitions. */
export interface PartitionSteps {
  readonly deps: () => NameDeps;
  readonly principal: Principal;
  readonly namespace: string;
  /** Checks a definition without running it. @throws {DatabaseError} */
  readonly check: (node: DefiningStatement) => void;
  readonly define: (node: DefiningStatement) => Promise<StatementResult>;
  readonly change: (node: DeleteStatement | InsertStatement) => Promise<StatementResult>;
  /**
   * Does work in the request's transaction, or in a transaction of its own if none is open. In the
   * latter case, other statements that write to the tables have to wait, and work that meets a
   * conflict is repeated.
   */
  readonly atomically: (
    tableIds: readonly number[],
    work: () => Promise<StatementResult>,
  ) => Promise<StatementResult>;
  /** Whether the request has opened a transaction. */
  readonly isInside: boolean;
}

/** Whether a statement moves or deletes rows of partitions. */
export function movesRows(node: Statement, steps: StepCaller): node is MovingStatement {
  if (node.type === "attach partition" || node.type === "detach partition") return true;
  return node.type === "drop table" && droppedPartitions(node, steps).length > 0;
}

type StepCaller = Pick<PartitionSteps, "deps" | "namespace" | "principal">;
type MovingStatement = AttachPartitionStatement | DetachPartitionStatement | DropTableStatement;

/** Runs a statement that moves or deletes rows of partitions. @throws {DatabaseError} */
export function changePartitions(
  node: MovingStatement,
  steps: PartitionSteps,
): Promise<StatementResult> {
  switch (node.type) {
    case "attach partition":
      return attach(node, steps);
    case "detach partition":
      return detach(node, steps);
    case "drop table":
      return drop(node, steps);
  }
}

/**
 * Makes a table a partition: copies its rows through the partition's new name, and drops the
 * table.
 */
async function attach(
  node: AttachPartitionStatement,
  steps: PartitionSteps,
): Promise<StatementResult> {
  const found = attachedTable(node, steps, steps.deps());
  const tableIds = [found.parent.tableId, found.table.tableId];
  requireAllRows(found.table, node, steps);
  requireAllRows(found.parent, node, steps);
  // Other objects may depend on the table, so the statement first checks that it may be dropped.
  steps.check({ type: "drop table", names: [node.partition], _location: node._location });
  return await steps.atomically(tableIds, async () => {
    const { table } = attachedTable(node, steps, steps.deps());
    const result = await steps.define(node);
    const { _location } = node;
    const moved = { name: movedName(table), schema: table.namespace, _location };
    const columns = columnList(table);
    const { lastSeq } = await steps.change(
      insertOf(
        `INSERT INTO ${pathOf(table)} (${columns}) SELECT ${columns} FROM ${pathOf({ ...table, name: moved.name })}`,
        node,
      ),
    );
    await steps.define({ type: "drop table", names: [moved], _location });
    return { ...result, lastSeq: lastSeq ?? null };
  });
}

/** Creates a table with the definition of a partition, and moves the partition's rows into it. */
async function detach(
  node: DetachPartitionStatement,
  steps: PartitionSteps,
): Promise<StatementResult> {
  const found = detachedPartition(node, steps, steps.deps());
  requireAllRows(found.table, node, steps);
  return await steps.atomically([found.table.tableId], async () => {
    const { catalog } = steps.deps();
    const { entry, table } = detachedPartition(node, steps, steps.deps());
    refuseReferred(table, steps.deps(), {
      action: `detach ${entry.namespace}.${entry.name}`,
      isDropped: false,
      node,
    });
    const where = rowsCondition(table, partitionsOf(catalog, table.tableId), entry);
    const result = await steps.define(node);
    const columns = columnList(table);
    await steps.change(
      insertOf(
        `INSERT INTO ${pathOf(entry)} (${columns}) SELECT ${columns} FROM ${pathOf(table)} WHERE ${where}`,
        node,
      ),
    );
    const { lastSeq } = await steps.change(
      deleteOf(`DELETE FROM ${pathOf(table)} WHERE ${where}`, node),
    );
    return { ...result, lastSeq: lastSeq ?? null };
  });
}

/** Deletes the partitions that a DROP TABLE names, together with their rows. */
async function drop(node: DropTableStatement, steps: PartitionSteps): Promise<StatementResult> {
  const found = droppedPartitions(node, steps);
  for (const { table } of found) requireAllRows(table, node, steps);
  const tableIds = [...new Set(found.map(({ table }) => table.tableId))];
  const deleteRows = async (): Promise<void> => {
    for (const { entry, table } of droppedPartitions(node, steps)) {
      const action = `drop table ${entry.namespace}.${entry.name}`;
      refuseReferred(table, steps.deps(), { action, isDropped: true, node });
      await steps.change(deleteOf(`DELETE FROM ${pathOf(entry)} WHERE TRUE`, node));
    }
  };
  const dropNow = async (): Promise<StatementResult> => {
    await deleteRows();
    return await steps.define(node);
  };
  try {
    return await steps.atomically(tableIds, dropNow);
  } catch (error) {
    const isLarge = error instanceof DatabaseError && error.code === "TRANSACTION_LIMIT";
    if (!isLarge || steps.isInside) throw error;
    // A transaction cannot hold so many rows. A separate DELETE may commit any number of rows, and
    // leaves the partition empty.
    await deleteRows();
    return await steps.atomically(tableIds, dropNow);
  }
}

interface NamedPartition {
  readonly entry: PartitionViewEntry;
  readonly table: TableEntry;
}

/** Returns the named partitions whose tables are not dropped in the same statement. */
function droppedPartitions(
  node: DropTableStatement,
  { deps, namespace, principal }: StepCaller,
): readonly NamedPartition[] {
  const named = deps();
  const found = node.names.flatMap(
    (name) => partitionNamed(name, { namespace, principal }, named) ?? [],
  );
  return found.filter(({ table }) =>
    node.names.every(
      ({ name, schema = namespace }) => name !== table.name || schema !== table.namespace,
    ),
  );
}

/**
 * Requires that no policy hides rows from the caller, because hidden rows would be left behind.
 */
function requireAllRows(
  table: TableEntry,
  { _location }: AstNode,
  { deps, principal }: StepCaller,
): void {
  if (hasEveryRow(principal, table, deps().catalog)) return;
  throw new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot change the partitions of ${nameOf(table)}: row policies of the table apply to you`,
    { position: _location.start, hint: "ask a user to whom no row policies of the table apply" },
  );
}

function columnList(table: TableEntry): string {
  return shownColumnsOf(table)
    .filter(({ generatedSql }) => generatedSql === undefined)
    .map(({ name }) => nameText(name))
    .join(", ");
}

function pathOf({
  name,
  namespace,
}: {
  readonly name: string;
  readonly namespace: string;
}): string {
  return `${nameText(namespace)}.${nameText(name)}`;
}

function insertOf(text: string, node: AstNode): InsertStatement {
  const statement = parsed(text, node);
  if (statement.type !== "insert") throw new Error("partition change: SQL text is not an INSERT");
  // Identity columns keep their values instead of getting new ones.
  return { ...statement, overriding: "system" };
}

function deleteOf(text: string, node: AstNode): DeleteStatement {
  const statement = parsed(text, node);
  if (statement.type !== "delete") throw new Error("partition change: SQL text is not a DELETE");
  return statement;
}

function parsed(text: string, { _location }: AstNode): Statement {
  const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
  const [statement] = parseStatements(text, limits);
  return relocated(
    defined(statement, "partition change: SQL text contains no statement"),
    _location,
  );
}
