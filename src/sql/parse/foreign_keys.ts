/**
 * Parses FOREIGN KEY and REFERENCES.
 */
import type { ConstraintForeignKey, Name, ReferenceAction } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";

/** Parses the table constraint `FOREIGN KEY (a, b) REFERENCES …`. */
export function parseForeignKey(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ConstraintForeignKey {
  cursor.expectAll("foreign", "key");
  const columns = cursor.nameList("a column");
  return parseReferences(cursor, start, { columns, constraintName });
}

/** Parses `REFERENCES t [(a, b)] …`. */
export function parseReferences(
  cursor: Cursor,
  start: number,
  { columns, constraintName }: Pick<ConstraintForeignKey, "columns" | "constraintName">,
): ConstraintForeignKey {
  cursor.expect("references");
  const table = cursor.qname("a table");
  const referenced = cursor.is("(") ? cursor.nameList("a column") : undefined;
  const { match, onDelete, onUpdate } = parseRules(cursor);
  return {
    type: "foreign key",
    columns,
    table,
    referenced,
    match,
    onDelete,
    onUpdate,
    ...parseTiming(cursor),
    constraintName,
    _location: cursor.since(start),
  };
}

function parseRules(cursor: Cursor): Pick<ConstraintForeignKey, "match" | "onDelete" | "onUpdate"> {
  let match: ConstraintForeignKey["match"];
  let onDelete: ReferenceAction | undefined;
  let onUpdate: ReferenceAction | undefined;
  for (;;) {
    if (match === undefined && cursor.accept("match")) {
      if (cursor.is("partial")) cursor.refuse("MATCH PARTIAL", "write MATCH SIMPLE or MATCH FULL");
      match = cursor.expectOneOf("full", "simple");
    } else if (onDelete === undefined && cursor.acceptAll("on", "delete")) {
      onDelete = parseAction(cursor);
    } else if (onUpdate === undefined && cursor.acceptAll("on", "update")) {
      onUpdate = parseAction(cursor);
    } else return { match, onDelete, onUpdate };
  }
}

function parseAction(cursor: Cursor): ReferenceAction {
  switch (cursor.expectOneOf("no", "restrict", "cascade", "set")) {
    case "no":
      cursor.expect("action");
      return "no action";
    case "restrict":
      return "restrict";
    case "cascade":
      return "cascade";
    case "set": {
      const action = cursor.expectOneOf("null", "default");
      if (cursor.is("("))
        cursor.refuse("SET NULL with a list of columns", "remove the list of columns");
      return action === "null" ? "set null" : "set default";
    }
  }
}

/** Parses `[NOT] DEFERRABLE`, `INITIALLY DEFERRED | IMMEDIATE` and `NOT VALID`, in any order. */
export function parseTiming(
  cursor: Cursor,
): Pick<ConstraintForeignKey, "deferrable" | "initially" | "notValid"> {
  let deferrable: boolean | undefined;
  let initially: ConstraintForeignKey["initially"];
  let notValid: true | undefined;
  for (;;) {
    const { start } = cursor;
    if (cursor.acceptAll("not", "deferrable")) deferrable = false;
    else if (cursor.acceptAll("not", "valid")) notValid = true;
    else if (cursor.accept("deferrable")) deferrable = true;
    else if (cursor.accept("initially")) {
      initially = cursor.expectOneOf("deferred", "immediate");
    } else return { deferrable: deferrable ?? initially === "deferred", initially, notValid };
    if (deferrable === false && initially === "deferred") {
      cursor.fail("found INITIALLY DEFERRED, but the constraint is not DEFERRABLE", start);
    }
  }
}
