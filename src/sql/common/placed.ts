/**
 * Where in a statement a fault is that a lower layer found: it knows the name, not its place.
 */
import { DatabaseError, withDetails } from "../../base/errors.ts";
import type { AstNode } from "../parse/ast/ast.ts";

/** Has what fails without a position fail at a name of the statement. */
export function atName<T>({ _location }: AstNode, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.position !== undefined) throw error;
    throw withDetails(error, { position: _location.start });
  }
}
