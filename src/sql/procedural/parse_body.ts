/** Parses the body of a function in PL/pgSQL. */
import { type BodyContext, BodyParser } from "./body_parser.ts";
import { parseStatement } from "./parse_statements.ts";
import type { NameConflict, ProcedureBody } from "./tree.ts";

/** @throws {DatabaseError} INVALID_SQL, BATCH_PARSE_ERROR, UNSUPPORTED_FEATURE */
export function parseBody(source: string, context: BodyContext): ProcedureBody {
  const { conflict, text } = withoutOptions(source);
  const parser = new BodyParser(text, context, parseStatement);
  return { conflict, ...parser.body() };
}

/** Matches an option at the start of a body, with any whitespace and comments before it. */
const OPTION = /^(?:\s|--[^\n]*)*#\s*(\w+)\s+(\w+)[^\n]*/;

/** Replaces the options at the start of a body by spaces, so that line numbers stay the same. */
function withoutOptions(source: string): { conflict: NameConflict; text: string } {
  let conflict: NameConflict = "error";
  let text = source;
  for (let found = OPTION.exec(text); found !== null; found = OPTION.exec(text)) {
    const [whole, name = "", value = ""] = found;
    if (name.toLowerCase() === "variable_conflict") {
      const word = value.toLowerCase();
      if (word === "use_column") conflict = "column";
      else if (word === "use_variable") conflict = "variable";
      else conflict = "error";
    }
    text = whole.replaceAll(/[^\n]/g, " ") + text.slice(whole.length);
  }
  return { conflict, text };
}
