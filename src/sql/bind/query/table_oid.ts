/**
 * Binds the system column `tableoid`: the OID of the table or partition that contains a row. For a
 * partitioned table it is computed from the bounds of the partitions:
 *
 *     CASE WHEN day < '2026-01-01' THEN 16390 WHEN … THEN 16391 … END
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { OID, unsignedValue } from "../../../types/mod.ts";
import type { AstNode } from "../../parse/ast/ast.ts";
import { relocated } from "../../parse/ast/tree_parts.ts";
import type { StatementBinding } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { parseStored } from "../expression/type_names.ts";
import { Scope } from "../scope.ts";

/** The OID of the first object with an id in the catalog. PostgreSQL reserves all lower OIDs. */
const FIRST_OID = 16384;

/** Returns the OID of the object with the given catalog id, as a value of type OID. */
export function oidOfId(id: number): string {
  return unsignedValue("oid", BigInt(FIRST_OID + id)) ?? "";
}

/**
 * Returns the catalog id of the object with the given OID. The result is negative if the catalog
 * cannot contain such an object.
 */
export function idOfOid(oid: string): number {
  return Number.parseInt(oid, 16) - FIRST_OID;
}

/** A leaf partition: a partition that is not partitioned further. */
export interface TablePart {
  /** The id of the partition in the catalog. */
  readonly id: number;
  /** The condition for the rows of the partition, as SQL over the columns of the whole table. */
  readonly condition: string;
}

/** The partitions of a table, with the columns that their conditions name. */
export interface TableParts {
  readonly table: TableEntry;
  readonly parts: readonly TablePart[];
}

export interface TableOidOptions {
  readonly statement: StatementBinding;
  readonly node: AstNode;
  /** The leaf partitions of a partitioned table; undefined if they cannot be listed. */
  readonly parts: TableParts | undefined;
  /** Returns the column of the relation that shows the given column of the table. */
  readonly columnOf: (column: TableEntry["columns"][number]) => BoundColumn | undefined;
}

/** Returns the OID of a table that has no partitions. */
export function constantTableOid(id: number): BoundExpression {
  return { kind: "constant", type: OID, value: oidOfId(id) };
}

/**
 * Returns the OID of the partition that contains a row.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
export function partitionOid({
  columnOf,
  node,
  parts: given,
  statement,
}: TableOidOptions): BoundExpression {
  if (given === undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot read tableoid of a partitioned table here: a policy cannot list the partitions",
      { position: node._location.start },
    );
  }
  const { parts, table } = given;
  const columns = table.columns.flatMap((column): BoundColumn[] => {
    const shown = columnOf(column);
    return shown === undefined ? [] : [{ ...shown, name: column.name }];
  });
  const { name: alias, namespace } = table;
  const scope = new Scope([{ alias, namespace, columns, systemColumns: [] }]);
  const context = { statement, scope, clause: "the bounds of a partition", sink: undefined };
  const branches = parts.map(({ condition, id }) => {
    statement.notePart();
    const parsed = relocated(parseStored(condition, table.columns), node._location);
    return { when: bindCondition(parsed, context), value: constantTableOid(id) };
  });
  return { kind: "case", type: OID, branches, otherwise: undefined };
}
