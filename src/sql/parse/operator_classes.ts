/** Recognises PostgreSQL's operator classes after the keys of indexes and partitions. */
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

/** The btree operator classes that match the sort order of Tidemark's indexes. */
const OPERATOR_CLASS =
  /^(?:text_pattern|varchar_pattern|bpchar_pattern|text|varchar|bpchar|int[248]|numeric|float[48]|date|time|timestamp|timestamptz|interval|uuid|bool|bytea|name|enum|array|record)_ops$/;

/** The gin operator classes, which determine the terms of an inverted index. */
const INVERTED_CLASS = /^(?:gin_trgm|tsvector|jsonb|jsonb_path|array)_ops$/;

/** Accepts the operator class after a column, if there is one. */
export function acceptOperatorClass(cursor: Cursor): void {
  if (cursor.kind !== Token.word) return;
  const name = cursor.nameText(cursor.token);
  if (!name.endsWith("_ops")) return;
  if (!OPERATOR_CLASS.test(name)) {
    const hint = INVERTED_CLASS.test(name) ? "USING gin" : "USING btree";
    cursor.refuse(`the operator class ${name} with a btree index`, hint);
  }
  cursor.token += 1;
}
