/**
 * Prints DECLARE, FETCH, MOVE and CLOSE as SQL.
 */
import type {
  CloseCursorStatement,
  DeclareCursorStatement,
  FetchDirection,
  FetchStatement,
  SelectForStatement,
} from "../ast/ast.ts";
import { nameText } from "./print_expressions.ts";
import { queryText } from "./print_queries.ts";

export type CursorStatement = CloseCursorStatement | DeclareCursorStatement | FetchStatement;

export function cursorText(statement: CursorStatement): string {
  switch (statement.type) {
    case "close cursor":
      return `CLOSE ${statement.name === undefined ? "ALL" : nameText(statement.name.name)}`;
    case "declare cursor": {
      const { isHeld, isScroll, name, query } = statement;
      const scroll = isScroll === undefined ? "" : isScroll ? " SCROLL" : " NO SCROLL";
      const text = query.type === "select for" ? lockingText(query) : queryText(query);
      const hold = isHeld === true ? " WITH HOLD" : "";
      return `DECLARE ${nameText(name.name)}${scroll} CURSOR${hold} FOR ${text}`;
    }
    default: {
      const { direction, name, type } = statement;
      return `${type.toUpperCase()} ${directionText(direction)} FROM ${nameText(name.name)}`;
    }
  }
}

/** Prints SELECT … FOR UPDATE and similar statements. */
export function lockingText({ of, query, strength, wait }: SelectForStatement): string {
  const names = of.length === 0 ? "" : ` OF ${of.map(({ name }) => nameText(name)).join(", ")}`;
  const waiting = wait === undefined ? "" : ` ${wait.toUpperCase()}`;
  return `${queryText(query)} FOR ${strength.toUpperCase()}${names}${waiting}`;
}

function directionText({ count, kind }: FetchDirection): string {
  return `${kind.toUpperCase()} ${Number.isFinite(count) ? count : "ALL"}`;
}
