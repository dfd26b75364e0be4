/**
 * Implements ALTER COLUMN for identity columns: ADD GENERATED … AS IDENTITY, SET GENERATED,
 * RESTART, sequence options, and DROP IDENTITY.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { ColumnEntry, SequenceEntry, TableEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type {
  AlterColumnDropIdentity,
  AlterColumnIdentity,
  AstNode,
  ColumnConstraintGenerated,
} from "../parse/ast/ast.ts";
import type { Altering } from "./altering.ts";
import { identityNumbering } from "./numbered_columns.ts";
import { restartedMark, sequenceShape } from "./sequence_options.ts";

interface IdentityChange<Node> {
  readonly alter: Node;
  readonly altering: Altering;
}

/** Returns the table with the entry of one column replaced. */
export function withColumn(table: TableEntry, column: ColumnEntry): TableEntry {
  const columns = table.columns.map((entry) =>
    entry.columnId === column.columnId ? column : entry,
  );
  return { ...table, columns };
}

/**
 * Turns a column into an identity column.
 *
 * @throws {DatabaseError} INVALID_OPERATION, INVALID_DEFINITION, ALREADY_EXISTS
 */
export function addIdentity(
  table: TableEntry,
  column: ColumnEntry,
  { alter, altering }: IdentityChange<ColumnConstraintGenerated>,
): TableEntry {
  const { columnId, defaultSql, generatedAlways, identity, name, notNull } = column;
  const why =
    identity !== undefined
      ? "the column is already an identity column"
      : generatedAlways || defaultSql !== undefined
        ? "the column has a DEFAULT"
        : notNull
          ? undefined
          : "the column allows NULL, but an identity column must be NOT NULL";
  if (why !== undefined) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot make column "${name}" of ${nameOf(table)} an identity column: ${why}`,
      {
        position: alter._location.start,
        ...(!notNull && { hint: "run ALTER COLUMN … SET NOT NULL first" }),
      },
    );
  }
  const numbering = identityNumbering(alter, columnId);
  const made = withColumn(table, {
    ...column,
    identity: alter.always,
    generatedAlways: alter.always === "always",
  });
  return altering.numbered(made, [numbering]);
}

/**
 * Changes a column's identity options and its sequence.
 *
 * @throws {DatabaseError} INVALID_OPERATION, INVALID_DEFINITION
 */
export function alterIdentity(
  table: TableEntry,
  column: ColumnEntry,
  { alter, altering }: IdentityChange<AlterColumnIdentity>,
): TableEntry {
  const sequence = requireIdentity(table, column, { alter, altering });
  const { always, options } = alter;
  if (options.length > 0) {
    const refused = options.find(({ type }) => type === "owned by" || type === "sequence name");
    if (refused !== undefined) {
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot use ${refused.type.toUpperCase()} here: an identity column always owns its ` +
          "sequence",
        { position: refused._location.start },
      );
    }
    const shape = sequenceShape(options, sequence);
    const { catalog } = altering.deps;
    const mark = restartedMark(options, shape, catalog.sequenceMark(sequence));
    altering.changeSequence({ ...sequence, ...shape });
    if (mark !== undefined) altering.marks.push(mark);
  }
  if (always === undefined || always === column.identity) return table;
  return withColumn(table, {
    ...column,
    identity: always,
    generatedAlways: always === "always",
  });
}

/**
 * Turns an identity column into an ordinary column.
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function dropIdentity(
  table: TableEntry,
  column: ColumnEntry,
  { alter, altering }: IdentityChange<AlterColumnDropIdentity>,
): TableEntry {
  if (alter.ifExists === true && column.identity === undefined) return table;
  altering.dropSequence(requireIdentity(table, column, { alter, altering }));
  const { defaultSql: _, identity: __, ...rest } = column;
  return withColumn(table, { ...rest, generatedAlways: false });
}

function requireIdentity(
  table: TableEntry,
  { columnId, identity, name }: ColumnEntry,
  { alter, altering }: IdentityChange<AstNode>,
): SequenceEntry {
  const sequence = identity && altering.sequenceOf(table, columnId);
  if (sequence !== undefined) return sequence;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change the identity of column "${name}" of ${nameOf(table)}: the column is not an ` +
      "identity column",
    { position: alter._location.start },
  );
}
