/** Parses COMMENT ON. */
import type { CommentedKind, CommentStatement } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { parseFunctionNamed } from "./functions.ts";
import { parseNamespaceName } from "./namespaces.ts";
import { parseTableColumn } from "./sequence_options.ts";
import { Token } from "./text/lexer.ts";

/** Parses `COMMENT ON kind object IS 'text' | NULL`. */
export function parseComment(cursor: Cursor, start: number): CommentStatement {
  cursor.expectAll("comment", "on");
  const { kind, ...object } = parseObject(cursor);
  cursor.expect("is");
  const comment = cursor.accept("null") ? undefined : cursor.string("a string in quotes or NULL");
  return { type: "comment on", kind, ...object, comment, _location: cursor.since(start) };
}

function parseObject(cursor: Cursor): Pick<CommentStatement, "kind" | "name" | "part"> {
  refuseKind(cursor);
  const word = cursor.expectOneOf(
    "aggregate",
    "collation",
    "column",
    "constraint",
    "domain",
    "function",
    "index",
    "materialized",
    "namespace",
    "schema",
    "sequence",
    "table",
    "type",
    "view",
  );
  switch (word) {
    case "materialized":
      cursor.expect("view");
      return { kind: "materialized view", name: cursor.qname("a materialized view") };
    case "namespace":
    case "schema":
      return { kind: "namespace", name: parseNamespaceName(cursor) };
    case "column": {
      const { column, table } = parseTableColumn(cursor);
      return { kind: word, name: table, part: column };
    }
    case "constraint": {
      const part = cursor.name("a constraint");
      cursor.expect("on");
      return { kind: word, name: cursor.qname("a table"), part };
    }
    case "function":
      return { kind: word, name: parseFunctionNamed(cursor) };
    case "aggregate":
      return {
        kind: "function",
        name: { ...parseFunctionNamed(cursor, word), kind: word },
      };
    case "collation":
    case "domain":
      return { kind: "type", name: cursor.qname(`a ${word}`) };
    default:
      return { kind: word, name: cursor.qname(ARTICLES[word]) };
  }
}

const ARTICLES = {
  index: "an index",
  sequence: "a sequence",
  table: "a table",
  type: "a type",
  view: "a view",
} as const satisfies Partial<Record<CommentedKind, string>>;

const COMMENTED: ReadonlySet<string> = new Set<
  CommentedKind | "aggregate" | "collation" | "domain" | "materialized" | "schema"
>([
  "aggregate",
  "collation",
  "column",
  "constraint",
  "domain",
  "function",
  "index",
  "materialized",
  "namespace",
  "schema",
  "sequence",
  "table",
  "type",
  "view",
]);

/** Rejects kinds of objects that cannot have comments. */
function refuseKind(cursor: Cursor): void {
  if (cursor.kind !== Token.word || COMMENTED.has(cursor.word)) return;
  const kind = cursor.nameText(cursor.token).toUpperCase();
  cursor.refuse(
    `COMMENT ON ${kind}`,
    "comments are supported only on tables, columns, views, indexes, sequences, types, " +
      "functions, aggregates, constraints and namespaces",
  );
}
