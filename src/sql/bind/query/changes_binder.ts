/**
 * Binds `changes('ns.t', from_seq [, to_seq])` in FROM, which yields every version of a table
 * between two seqs.
 *
 * The table name must be a string literal, because the plan and the required rights depend on it.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { BIGINT, DATETIME, type DataType, JSONB, TEXT } from "../../../types/mod.ts";
import type { Expr, FromCall } from "../../parse/ast/ast.ts";
import { nameInText } from "../../parse/name_in_text.ts";
import type { BoundRelation } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import { noteRight } from "../row_rights.ts";
import { bindWithoutColumns, notedPast } from "./past_binder.ts";
import type { SelectDeps } from "./select_deps.ts";
import { CHANGES } from "./table_function_binder.ts";

/** The columns of the rows that changes() yields. */
const COLUMNS: readonly { readonly name: string; readonly type: DataType }[] = [
  { name: "_seq", type: BIGINT },
  { name: "op", type: TEXT },
  { name: "changed_at", type: DATETIME },
  { name: "key", type: JSONB },
  { name: "old", type: JSONB },
  { name: "new", type: JSONB },
];

export function isChangesCall({ function: { name, schema } }: FromCall): boolean {
  return name === CHANGES && schema === undefined;
}

/**
 * Binds a call to `changes`.
 *
 * @throws {DatabaseError} INVALID_QUERY, INVALID_NAME, TABLE_NOT_FOUND; INVALID_OPERATION for a
 *   relation without history; TYPE_MISMATCH
 */
export function bindChanges(
  item: FromCall,
  deps: SelectDeps,
): Extract<BoundRelation, { kind: "changes" }> {
  const { source, statement } = deps;
  const [nameNode, fromNode, toNode, ...others] = item.args;
  const isPlain = item.argNames === undefined && item.columnDefinitions === undefined;
  if (nameNode?.type !== "string" || fromNode === undefined || others.length > 0 || !isPlain) {
    throw refused(item, "write it as changes('namespace.table', from_seq [, to_seq])");
  }
  if (item.withOrdinality === true)
    throw refused(item, "WITH ORDINALITY is not supported for changes");
  const table = tableNamed(nameNode.value, nameNode, source);
  // Reading the past requires the right to read history, which includes the right to read every
  // row.
  noteRight(table, deps);
  const bound = (node: Expr): BoundExpression =>
    castTo(bindWithoutColumns(node, "the arguments of changes", statement), {
      to: BIGINT,
      mode: "implicit",
      node,
    });
  const past = notedPast({ table, moment: bound(fromNode), isExact: true }, deps);
  const upTo = toNode === undefined ? undefined : bound(toNode);
  const names = item.alias?.columns ?? [];
  if (names.length > COLUMNS.length) {
    throw refused(
      item,
      `it returns ${COLUMNS.length} columns, but ${names.length} column names are given`,
    );
  }
  const columns = COLUMNS.map(({ name, type }, index) =>
    statement.newColumn({ name: names[index]?.name ?? name, type }),
  );
  return { kind: "changes", changes: { past, upTo }, alias: item.alias?.name ?? CHANGES, columns };
}

function tableNamed(text: string, node: Expr, source: SelectDeps["source"]): TableEntry {
  const { name, namespace = source.namespace } = nameInText(text);
  const named = { name, schema: namespace };
  const isView =
    source.systemView(namespace, name) !== undefined || source.view(named) !== undefined;
  const table = isView ? undefined : source.table(named, node);
  if (table !== undefined && table.kind !== "stream") return table;
  const what = isView ? "a view" : "a STREAM table";
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot read the changes to ${what}: only USER and SHARED tables keep a history of changes`,
    { position: node._location.start, hint: "name a USER or SHARED table" },
  );
}

function refused(item: FromCall, rule: string): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot call changes: ${rule}`, {
    position: item._location.start,
  });
}
