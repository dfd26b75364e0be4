/** Adds the position in the statement to an error from a lower layer, which knows only the name. */
import { DatabaseError, withDetails } from "../../base/errors.ts";
import type { AstNode } from "../parse/ast/ast.ts";

/** Runs a function; an error without a position gets the position of a name in the statement. */
export function atName<T>({ _location }: AstNode, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.position !== undefined) throw error;
    throw withDetails(error, { position: _location.start });
  }
}
