/**
 * Resolves sequence names in statements, in DEFAULTs and in strings such as 'app.orders_id_seq',
 * and checks the rights to use the sequences.
 *
 * For a sequence that a column owns, the rights on the table apply: the right to write to the
 * table allows nextval, and the right to alter it allows setval. Any other sequence requires the
 * role service or higher, or ownership of its namespace.
 */
import { mayAlter, mayRun, mayWrite, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type { Catalog, ColumnEntry, SequenceEntry, TableEntry } from "../../catalog/mod.ts";
import type { Expr, QName } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { type NameInText, nameInText } from "../parse/name_in_text.ts";
import { parseExpression } from "../parse/parser.ts";
import { findNamespace } from "./table_names.ts";

export type SequenceUse = "take" | "set";

/** Returns the name of a sequence as "namespace.name", quoted where SQL requires it. */
export function sequenceText({
  name,
  namespace,
}: Pick<SequenceEntry, "name" | "namespace">): string {
  return `${quoted(namespace)}.${quoted(name)}`;
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Returns the DEFAULT expression of a column that takes its values from a sequence. */
export function defaultFrom(sequence: Pick<SequenceEntry, "name" | "namespace">): string {
  return `nextval('${sequenceText(sequence)}'::regclass)`;
}

/**
 * Returns the sequence with the given name.
 *
 * @param current The namespace for unqualified names.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, NAMESPACE_NOT_FOUND
 */
export function findSequence(
  catalog: Pick<Catalog, "namespace" | "sequence" | "sequences">,
  node: QName,
  current: string,
): SequenceEntry {
  const { name, schema: namespace = current } = node;
  const sequence = catalog.sequence(namespace, name);
  if (sequence !== undefined) return sequence;
  findNamespace(catalog, namespace, node);
  throw sequenceNotFound(catalog, { namespace, name }, node._location.start);
}

export function sequenceNotFound(
  catalog: Pick<Catalog, "sequences">,
  { name, namespace }: { namespace: string; name: string },
  position?: number,
): DatabaseError {
  const shown = `${namespace}.${name}`;
  const known = catalog.sequences().map((each) => `${each.namespace}.${each.name}`);
  const near = known.find((each) => each.endsWith(`.${name}`)) ?? nearestName(shown, known);
  return new DatabaseError("OBJECT_NOT_FOUND", `Cannot find sequence "${shown}"`, {
    ...(position === undefined ? {} : { position }),
    hint:
      near === undefined ? "the sequences are listed in system.sequences" : `did you mean ${near}?`,
  });
}

/** Returns the sequences owned by columns of a table. */
export function sequencesOf(
  catalog: Pick<Catalog, "sequences">,
  tableId: number,
): readonly SequenceEntry[] {
  return catalog.sequences().filter(({ ownedBy }) => ownedBy?.tableId === tableId);
}

export function mayUseSequence(
  principal: Principal,
  { namespace, ownedBy }: SequenceEntry,
  { catalog, use }: { catalog: Pick<Catalog, "namespace" | "tableById">; use: SequenceUse },
): boolean {
  const table = ownedBy === undefined ? undefined : catalog.tableById(ownedBy.tableId);
  if (table === undefined) return mayRun(principal, "defineTable", catalog.namespace(namespace));
  const holder = catalog.namespace(table.namespace);
  return use === "take" ? mayWrite(principal, table, holder) : mayAlter(principal, table, holder);
}

/** Requires that the caller may use a sequence. @throws {DatabaseError} PERMISSION_DENIED */
export function requireSequenceUse(
  principal: Principal,
  sequence: SequenceEntry,
  about: { catalog: Pick<Catalog, "namespace" | "tableById">; use: SequenceUse },
): void {
  if (mayUseSequence(principal, sequence, about)) return;
  const { namespace, name, ownedBy } = sequence;
  const what = about.use === "take" ? "get values from" : "set";
  const who =
    ownedBy === undefined
      ? "this requires the role service or higher, or ownership of the namespace"
      : `this requires the right to ${about.use === "take" ? "write to" : "alter"} the table ` +
        "that owns the sequence";
  throw new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot ${what} sequence ${namespace}.${name}: ${who}`,
  );
}

/** A sequence name in an expression, with its position in the text. */
interface NamedSequence extends NameInText {
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the sequences that an expression names by string literals in calls such as nextval('s').
 */
export function sequencesNamedIn(node: Expr): NamedSequence[] {
  const named: NamedSequence[] = [];
  for (const part of partsOf(node)) {
    const call: Partial<Expr> = part;
    if (call.type !== "call" || call.function?.name !== "nextval") continue;
    const [argument] = call.args ?? [];
    const literal = argument?.type === "cast" ? argument.operand : argument;
    if (literal?.type !== "string") continue;
    const { end, start } = literal._location;
    named.push({ ...nameInText(literal.value), start, end });
  }
  return named;
}

/** Whether the DEFAULT of a column takes values from a sequence. */
function takesFrom(defaultSql: string | undefined, sequence: SequenceEntry): boolean {
  if (defaultSql === undefined || !/nextval/i.test(defaultSql)) return false;
  return sequencesNamedIn(parseExpression(defaultSql)).some(
    ({ name, namespace }) => namespace === sequence.namespace && name === sequence.name,
  );
}

/** Returns a column whose DEFAULT uses the sequence's new name. */
export function withRenamedSequence(
  column: ColumnEntry,
  before: SequenceEntry,
  renamed: SequenceEntry,
): ColumnEntry {
  const { defaultSql } = column;
  if (defaultSql === undefined || !takesFrom(defaultSql, before)) return column;
  let text = defaultSql;
  for (const { end, name, namespace, start } of sequencesNamedIn(
    parseExpression(defaultSql),
  ).toReversed()) {
    if (name !== before.name || namespace !== before.namespace) continue;
    text = `${text.slice(0, start)}'${sequenceText(renamed)}'${text.slice(end)}`;
  }
  return { ...column, defaultSql: text };
}

/** A column whose DEFAULT takes values from a sequence. */
export interface NumberedColumn {
  readonly table: TableEntry;
  readonly columnId: number;
}

/** Returns the columns of other tables whose DEFAULTs take values from the given sequences. */
export function columnsTakingFrom(
  catalog: Pick<Catalog, "tables">,
  sequences: readonly SequenceEntry[],
  exceptOf: ReadonlySet<number> = new Set(),
): NumberedColumn[] {
  if (sequences.length === 0) return [];
  return catalog.tables().flatMap((table) => {
    if (exceptOf.has(table.tableId)) return [];
    return table.columns.flatMap(({ columnId, defaultSql }) =>
      sequences.some((each) => takesFrom(defaultSql, each)) ? [{ table, columnId }] : [],
    );
  });
}

/**
 * Returns a DEFAULT in which sequence names are qualified by their namespaces, because it may be
 * evaluated in any current namespace. The user who defines it must have the right to use the
 * sequences, because everyone who later writes to the table uses them.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, PERMISSION_DENIED, INVALID_NAME
 */
export function qualifiedDefault(
  source: string,
  {
    catalog,
    namespace: current,
    principal,
  }: { catalog: Catalog; principal: Principal; namespace: string },
  position: number,
): string {
  if (!/nextval/i.test(source)) return source;
  let text = source;
  for (const { end, name, namespace = current, start } of sequencesNamedIn(
    parseExpression(source),
  ).toReversed()) {
    const sequence = catalog.sequence(namespace, name);
    if (sequence === undefined) throw sequenceNotFound(catalog, { namespace, name }, position);
    requireSequenceUse(principal, sequence, { catalog, use: "take" });
    text = `${text.slice(0, start)}'${sequenceText(sequence)}'${text.slice(end)}`;
  }
  return text;
}
