/**
 * Parses definitions of tables and views. Expressions keep their SQL text. The catalog
 * stores the text rather than the tree, because the text stays valid when the form of the tree
 * changes.
 */
import type {
  ColumnConstraint,
  ColumnConstraintGenerated,
  ConstraintCheck,
  CreateColumnDef,
  CreateTableAsStatement,
  CreateTableStatement,
  CreateViewStatement,
  DataTypeDef,
  DropBehaviour,
  DropTableStatement,
  DropViewStatement,
  ExecutePreparedStatement,
  LikedPart,
  Name,
  PartitionColumn,
  QName,
  TableConstraint,
  TableKindWord,
  TableLike,
  TablePersistence,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import { parseCollatedType, withAcceptedCollation } from "./collations.ts";
import type { Cursor } from "./cursor.ts";
import { parseExclude } from "./exclude.ts";
import { parseForeignKey, parseReferences } from "./foreign_keys.ts";
import { parseSourced } from "./indexed_parts.ts";
import { parseOptions } from "./options.ts";
import { acceptPartitionBy, parseBounds } from "./partitions.ts";
import { acceptOnCommit } from "./persistence.ts";
import { nameText } from "./print/print_expressions.ts";
import { parseQuery, recursiveQuery } from "./select.ts";
import { parseSequenceOptions } from "./sequence_options.ts";
import { parseTableAs } from "./table_as.ts";

export function acceptIfNotExists(cursor: Cursor): true | undefined {
  return cursor.acceptAll("if", "not", "exists") ? true : undefined;
}

export function acceptIfExists(cursor: Cursor): true | undefined {
  return cursor.acceptAll("if", "exists") ? true : undefined;
}

export function acceptBehaviour(cursor: Cursor): DropBehaviour | undefined {
  return cursor.acceptOneOf("restrict", "cascade");
}

/** Parses the rest of a statement after `CREATE [kind | TEMPORARY | UNLOGGED] TABLE`. */
export function parseCreateTable(
  cursor: Cursor,
  start: number,
  { kind, ...persistence }: TablePersistence & { readonly kind: TableKindWord | undefined },
): CreateTableStatement | CreateTableAsStatement | ExecutePreparedStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname("a table");
  const hasNames = cursor.is("(") && (cursor.isAhead(2, ",") || cursor.isAhead(2, ")"));
  const isOnCommit = cursor.is("on") && persistence.temporary === true;
  if (hasNames || isOnCommit || cursor.is("as") || cursor.is("with")) {
    const columnNames = hasNames ? cursor.nameList("a column") : undefined;
    const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
    const table = {
      kind,
      name,
      ifNotExists,
      ...persistence,
      ...acceptOnCommit(cursor, persistence),
    };
    return parseTableAs(cursor, start, { ...table, columnNames, options });
  }
  if (cursor.acceptAll("partition", "of")) {
    refuseTemporary(cursor, persistence);
    return parsePartitionTable(cursor, start, { kind, name, ifNotExists });
  }
  refuseTableForms(cursor);
  const elements = parseTableElements(cursor);
  if (cursor.is("partition")) refuseTemporary(cursor, persistence);
  const partitionBy = acceptPartitionBy(cursor);
  if (persistence.temporary !== true || !cursor.is("on")) refuseTableClauses(cursor);
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  // Old PostgreSQL scripts end CREATE TABLE with WITHOUT OIDS. Tables have no oid column here
  // anyway.
  if (options === undefined) cursor.acceptAll("without", "oids");
  const onCommit = acceptOnCommit(cursor, persistence);
  refuseTableClauses(cursor);
  return {
    type: "create table",
    kind,
    name,
    ifNotExists,
    ...persistence,
    ...onCommit,
    ...elements,
    partitionBy,
    options,
    _location: cursor.since(start),
  };
}

/**
 * Rejects partitioning of a temporary table, because such a table exists only in its transaction.
 */
function refuseTemporary(
  cursor: Cursor,
  { temporary }: Pick<CreateTableStatement, "temporary">,
): void {
  if (temporary === true) cursor.refuse("partitions of a temporary table", "use a permanent table");
}

/** Rejects forms of CREATE TABLE that lack a parenthesised column list. */
function refuseTableForms(cursor: Cursor): void {
  if (cursor.is("like")) {
    cursor.refuse(
      "CREATE TABLE … LIKE without parentheses",
      "write CREATE TABLE name (LIKE other_table INCLUDING ALL)",
    );
  }
  if (cursor.is("of")) cursor.refuse("CREATE TABLE … OF a type");
  if (cursor.is("(") && cursor.isAhead(1, ")")) {
    cursor.refuse(
      "a table without columns",
      "define at least one column, as in CREATE TABLE name (id BIGINT PRIMARY KEY)",
    );
  }
}

/** Parses the parenthesised columns, constraints and LIKE clauses. */
function parseTableElements(
  cursor: Cursor,
): Pick<CreateTableStatement, "columns" | "constraints" | "likes"> {
  cursor.expect("(");
  const columns: CreateColumnDef[] = [];
  const constraints: TableConstraint[] = [];
  const likes: TableLike[] = [];
  do {
    if (cursor.is("like")) likes.push(parseLike(cursor, columns.length));
    else if (isTableConstraint(cursor)) constraints.push(parseTableConstraint(cursor));
    else columns.push(parseColumn(cursor));
    const count = columns.length + constraints.length + likes.length;
    requireListed(cursor, count, "columns and constraints");
  } while (cursor.accept(","));
  cursor.expect(")");
  return {
    columns,
    likes: likes.length === 0 ? undefined : likes,
    constraints: constraints.length === 0 ? undefined : constraints,
  };
}

/** Parses the rest of a statement after `CREATE TABLE p PARTITION OF`. */
function parsePartitionTable(
  cursor: Cursor,
  start: number,
  about: Pick<CreateTableStatement, "ifNotExists" | "kind" | "name">,
): CreateTableStatement {
  const parent = cursor.qname("a table");
  const { columns, constraints } = parsePartitionElements(cursor);
  const partitionOf = { parent, columns, bounds: parseBounds(cursor) };
  const partitionBy = acceptPartitionBy(cursor);
  refuseTableClauses(cursor);
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  refuseTableClauses(cursor);
  const _location = cursor.since(start);
  const parts = { columns: [], constraints, options, partitionOf, partitionBy };
  return { type: "create table", ...about, ...parts, _location };
}

/** Parses the constraints and DEFAULTs of a single partition, if any come next. */
function parsePartitionElements(cursor: Cursor): {
  readonly columns: readonly PartitionColumn[] | undefined;
  readonly constraints: readonly TableConstraint[] | undefined;
} {
  const columns: PartitionColumn[] = [];
  const constraints: TableConstraint[] = [];
  if (cursor.accept("(")) {
    do {
      if (isTableConstraint(cursor)) constraints.push(parseTableConstraint(cursor));
      else columns.push(parsePartitionColumn(cursor));
      requireListed(cursor, columns.length + constraints.length, "columns and constraints");
    } while (cursor.accept(","));
    cursor.expect(")");
  }
  return {
    columns: columns.length === 0 ? undefined : columns,
    constraints: constraints.length === 0 ? undefined : constraints,
  };
}

function parsePartitionColumn(cursor: Cursor): PartitionColumn {
  const start = cursor.token;
  const name = cursor.name("a column");
  cursor.acceptAll("with", "options");
  const constraints: ColumnConstraint[] = [];
  for (;;) {
    const constraint = parseColumnConstraint(cursor, name);
    if (constraint === undefined) return { name, constraints, _location: cursor.since(start) };
    constraints.push(constraint);
  }
}

/**
 * Parses `LIKE t [{INCLUDING | EXCLUDING} part …]`.
 *
 * @param after The number of columns that precede the clause in the table's column list.
 */
function parseLike(cursor: Cursor, after: number): TableLike {
  const start = cursor.token;
  cursor.expect("like");
  const table = cursor.qname("a table");
  const parts: TableLike["parts"][number][] = [];
  for (;;) {
    const word = cursor.acceptOneOf("including", "excluding");
    if (word === undefined) break;
    parts.push({ including: word === "including", part: cursor.expectOneOf(...LIKED_PARTS) });
    requireListed(cursor, parts.length, "parts of a single LIKE clause");
  }
  return { type: "like", table, after, parts, _location: cursor.since(start) };
}

const LIKED_PARTS: readonly LikedPart[] = [
  "all",
  "comments",
  "compression",
  "constraints",
  "defaults",
  "generated",
  "identity",
  "indexes",
  "statistics",
  "storage",
];

/** Rejects clauses of CREATE TABLE that only other systems support. */
export function refuseTableClauses(cursor: Cursor): void {
  switch (cursor.word) {
    case "as":
      return cursor.refuse("column definitions before AS", "list only the column names");
    case "inherits":
      return cursor.refuse("INHERITS", "define the same columns in both tables");
    case "using":
      return cursor.refuse("USING with a table access method");
    case "tablespace":
      return cursor.refuse("TABLESPACE", "use the table option STORAGE_ID to choose a storage");
    case "on":
      return cursor.refuse("ON COMMIT for a permanent table", "write CREATE TEMPORARY TABLE");
  }
}

/** Whether the next token begins a table constraint. */
export function isTableConstraint(cursor: Cursor): boolean {
  switch (cursor.word) {
    case "constraint":
    case "primary":
    case "check":
    case "foreign":
      return true;
    case "unique":
      // UNIQUE without either of these tokens after it is the name of a column.
      return cursor.isAhead(1, "(") || cursor.isAhead(1, "nulls");
    case "exclude":
      return cursor.isAhead(1, "(") || cursor.isAhead(1, "using");
    default:
      return false;
  }
}

/**
 * Parses `[CONSTRAINT k] (PRIMARY KEY (…) | UNIQUE (…) | CHECK (…) | EXCLUDE (…) | FOREIGN KEY (…)
 * REFERENCES …)`.
 */
export function parseTableConstraint(cursor: Cursor): TableConstraint {
  const start = cursor.token;
  const constraintName = cursor.accept("constraint") ? cursor.name("a constraint") : undefined;
  if (cursor.is("foreign")) return parseForeignKey(cursor, start, constraintName);
  if (cursor.is("exclude")) {
    const exclude = parseExclude(cursor, start, constraintName);
    acceptKeyTiming(cursor);
    return exclude;
  }
  const isUnique = cursor.accept("unique");
  if (isUnique || cursor.acceptAll("primary", "key")) {
    const nulls = isUnique ? acceptNulls(cursor) : {};
    const columns = cursor.nameList("a column");
    const included = acceptIncluded(cursor);
    acceptKeyTiming(cursor);
    const _location = cursor.since(start);
    const type = isUnique ? "unique" : "primary key";
    return { type, ...nulls, columns, ...included, constraintName, _location };
  }
  return parseCheck(cursor, start, constraintName);
}

/** Parses the clause `[NULLS [NOT] DISTINCT]` of a unique key. */
export function acceptNulls(cursor: Cursor): { readonly equalNulls?: true } {
  if (!cursor.accept("nulls")) return {};
  const equalNulls = cursor.accept("not");
  cursor.expect("distinct");
  return equalNulls ? { equalNulls } : {};
}

/**
 * Accepts `[NOT] DEFERRABLE` and `INITIALLY IMMEDIATE` after a key, and rejects INITIALLY
 * DEFERRED. The accepted words have no effect, because a key is always checked once all rows of
 * the statement are known.
 */
function acceptKeyTiming(cursor: Cursor): void {
  for (;;) {
    const { start } = cursor;
    if (cursor.acceptAll("not", "deferrable") || cursor.accept("deferrable")) continue;
    if (!cursor.accept("initially")) return;
    if (cursor.accept("immediate")) continue;
    cursor.expect("deferred");
    cursor.refuse(
      "INITIALLY DEFERRED of a key",
      "remove it: keys are always checked at the end of the statement, when all of its rows " +
        "are known",
      start,
    );
  }
}

/** Parses `CHECK (…)`. */
export function parseCheck(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ConstraintCheck {
  cursor.expectAll("check", "(");
  const { expr, source } = parseSourced(cursor);
  cursor.expect(")");
  // Since there is no table inheritance, NO INHERIT has no effect on a table without partitions.
  const only = cursor.acceptAll("no", "inherit") ? { isNotInherited: true as const } : {};
  return { type: "check", expr, source, ...only, constraintName, _location: cursor.since(start) };
}

/** Parses the clause `[INCLUDE (…)]` of a key or index. */
export function acceptIncluded(cursor: Cursor): { readonly included?: readonly Name[] } {
  return cursor.accept("include") ? { included: cursor.nameList("a column") } : {};
}

/** Parses the UNIQUE constraint of a single column. */
function parseUniqueColumn(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ColumnConstraint {
  cursor.expect("unique");
  const nulls = acceptNulls(cursor);
  acceptKeyTiming(cursor);
  return { type: "unique", ...nulls, constraintName, _location: cursor.since(start) };
}

/** Parses a column definition: `name type constraint…`. */
export function parseColumn(cursor: Cursor): CreateColumnDef {
  const start = cursor.token;
  const name = cursor.name("a column");
  const { constraints, dataType } = parseTypedConstraints(cursor, name, acceptCompression);
  return {
    kind: "column",
    name,
    dataType,
    constraints: constraints.length === 0 ? undefined : constraints,
    _location: cursor.since(start),
  };
}

/**
 * Parses the type and constraints of a column or domain. COLLATE may stand anywhere among the
 * constraints, but belongs to the type.
 *
 * @param afterType Parses what may follow the type directly.
 */
export function parseTypedConstraints(
  cursor: Cursor,
  name: Name,
  afterType?: (cursor: Cursor) => void,
): { readonly dataType: DataTypeDef; readonly constraints: readonly ColumnConstraint[] } {
  let dataType = parseCollatedType(cursor);
  afterType?.(cursor);
  const constraints: ColumnConstraint[] = [];
  for (;;) {
    const constraint = parseColumnConstraint(cursor, name);
    if (constraint !== undefined) constraints.push(constraint);
    else if (cursor.is("collate")) dataType = withAcceptedCollation(cursor, dataType);
    else return { dataType, constraints };
  }
}

/**
 * Accepts `COMPRESSION method` of a column. It has no effect, because the option COMPRESSION of a
 * table decides.
 */
function acceptCompression(cursor: Cursor): void {
  if (!cursor.accept("compression") || cursor.accept("default")) return;
  const { _location, name } = cursor.name("a compression method");
  if (COMPRESSION_METHODS.has(name)) return;
  cursor.refuse(
    `the compression method ${name}`,
    "choose the compression of a table with WITH (COMPRESSION = …)",
    _location.start,
  );
}

/** The methods of PostgreSQL, which its dumps name. */
const COMPRESSION_METHODS: ReadonlySet<string> = new Set(["pglz", "lz4"]);

function parseColumnConstraint(cursor: Cursor, column: Name): ColumnConstraint | undefined {
  const start = cursor.token;
  const constraintName = cursor.accept("constraint") ? cursor.name("a constraint") : undefined;
  switch (cursor.word) {
    case "null":
      cursor.token += 1;
      return { type: "null", constraintName, _location: cursor.since(start) };
    case "not":
      cursor.expectAll("not", "null");
      return { type: "not null", constraintName, _location: cursor.since(start) };
    case "primary":
      cursor.expectAll("primary", "key");
      acceptKeyTiming(cursor);
      return { type: "primary key", constraintName, _location: cursor.since(start) };
    case "auto_increment":
      cursor.token += 1;
      return { type: "auto increment", constraintName, _location: cursor.since(start) };
    case "default": {
      cursor.token += 1;
      const { expr, source } = parseSourced(cursor);
      const _location = cursor.since(start);
      return { type: "default", default: expr, source, constraintName, _location };
    }
    case "check":
      return parseCheck(cursor, start, constraintName);
    case "generated":
      return parseGenerated(cursor, start, constraintName);
    case "unique":
      return parseUniqueColumn(cursor, start, constraintName);
    case "references":
      return parseReferences(cursor, start, { columns: [column], constraintName });
    default:
      if (constraintName !== undefined) {
        cursor.couldBe("primary", "unique", "not", "null", "check", "default");
        cursor.unexpected("a constraint");
      }
      cursor.couldBe("primary", "unique", "not", "null", "default", "check");
      cursor.couldBe("auto_increment", "generated");
      return undefined;
  }
}

function parseGenerated(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ColumnConstraint {
  cursor.expect("generated");
  const always = parseAlways(cursor);
  cursor.expect("as");
  if (!cursor.is("(")) return parseIdentity(cursor, start, { always, constraintName });
  if (always === "by default") cursor.unexpected("IDENTITY");
  cursor.expect("(");
  const { expr, source } = parseSourced(cursor);
  cursor.expect(")");
  if (cursor.is("virtual")) {
    cursor.refuse("GENERATED … VIRTUAL", "write STORED, or compute the value in a view");
  }
  cursor.expect("stored");
  return { type: "stored", expr, source, constraintName, _location: cursor.since(start) };
}

/** Parses `ALWAYS` or `BY DEFAULT` of a generated column. */
export function parseAlways(cursor: Cursor): ColumnConstraintGenerated["always"] {
  if (cursor.expectOneOf("always", "by") === "always") return "always";
  cursor.expect("default");
  return "by default";
}

/** Parses `IDENTITY [(options)]`. */
export function parseIdentity(
  cursor: Cursor,
  start: number,
  { always, constraintName }: Pick<ColumnConstraintGenerated, "always" | "constraintName">,
): ColumnConstraintGenerated {
  cursor.expect("identity");
  let options: ColumnConstraintGenerated["options"];
  if (cursor.accept("(")) {
    options = parseSequenceOptions(cursor);
    cursor.expect(")");
  }
  const _location = cursor.since(start);
  return { type: "add generated", always, options, constraintName, _location };
}

/** Parses the rest of a statement after `DROP [kind] TABLE`. */
export function parseDropTable(
  cursor: Cursor,
  start: number,
  kind: TableKindWord | undefined,
): DropTableStatement {
  const ifExists = acceptIfExists(cursor);
  const names = parseQNames(cursor, "a table");
  const cascade = acceptBehaviour(cursor);
  return { type: "drop table", kind, names, ifExists, cascade, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP VIEW`. */
export function parseDropView(cursor: Cursor, start: number): DropViewStatement {
  const ifExists = acceptIfExists(cursor);
  const names = parseQNames(cursor, "a view");
  const cascade = acceptBehaviour(cursor);
  return { type: "drop view", names, ifExists, cascade, _location: cursor.since(start) };
}

export function parseQNames(cursor: Cursor, what: string): QName[] {
  const names = [cursor.qname(what)];
  while (cursor.accept(",")) names.push(cursor.qname(what));
  return names;
}

/**
 * Parses a CREATE VIEW statement from the word VIEW or RECURSIVE VIEW, after `CREATE [OR
 * REPLACE]`.
 */
export function parseCreateView(
  cursor: Cursor,
  start: number,
  { orReplace, temporary }: Pick<CreateViewStatement, "orReplace" | "temporary">,
): CreateViewStatement {
  const isRecursive = cursor.accept("recursive");
  cursor.expect("view");
  const name = cursor.qname("a view");
  const columnNames = isRecursive || cursor.is("(") ? cursor.nameList("a column") : undefined;
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  cursor.expect("as");
  const at = cursor.start;
  const written = parseQuery(cursor);
  const text = cursor.text.slice(at, cursor.end);
  const { query, source } =
    isRecursive && columnNames !== undefined
      ? recursiveView(name, columnNames, { query: written, source: text })
      : { query: written, source: text };
  const checkOption = acceptCheckOption(cursor);
  const _location = cursor.since(start);
  const view = {
    type: "create view",
    orReplace,
    temporary,
    name,
    columnNames,
    options,
    query,
    source,
  } as const;
  return checkOption === undefined ? { ...view, _location } : { ...view, checkOption, _location };
}

/** Returns the query of CREATE RECURSIVE VIEW, which may refer to the view itself. */
function recursiveView(
  name: QName,
  columnNames: readonly Name[],
  { query, source }: Pick<CreateViewStatement, "query" | "source">,
): Pick<CreateViewStatement, "query" | "source"> {
  const view = nameText(name.name);
  const columns = columnNames.map((column) => nameText(column.name)).join(", ");
  return {
    query: recursiveQuery(name, columnNames, query),
    source: `WITH RECURSIVE ${view} (${columns}) AS (${source}\n) SELECT * FROM ${view}`,
  };
}

/** Parses the clause `WITH [CASCADED | LOCAL] CHECK OPTION` of a view, if it is present. */
function acceptCheckOption(cursor: Cursor): CreateViewStatement["checkOption"] {
  if (!cursor.accept("with")) return undefined;
  const option = cursor.accept("local") ? "local" : "cascaded";
  if (option === "cascaded") cursor.accept("cascaded");
  cursor.expectAll("check", "option");
  return option;
}
