/** Binds a statement that reads or writes rows. */
import type { QueryStatement } from "../../parse/ast/ast.ts";
import { isChangeNode } from "../../parse/ast/query_nodes.ts";
import type { BoundSelect } from "../bound.ts";
import { bindInSteps } from "../query/select_binder.ts";
import { depsWith } from "../query/with_binder.ts";
import type { DmlDeps } from "./dml_target.ts";
import { type BoundInsert, bindInsert } from "./insert_binder.ts";
import { type BoundDelete, type BoundUpdate, bindDelete, bindUpdate } from "./update_binder.ts";

export type BoundChange = BoundInsert | BoundUpdate | BoundDelete;

export type BoundStatement = BoundChange | { readonly kind: "query"; readonly select: BoundSelect };

/** Binds in small steps. @throws {DatabaseError} */
export function* bindStatement(
  node: QueryStatement,
  deps: DmlDeps,
): Generator<void, BoundStatement> {
  switch (node.type) {
    case "insert":
      return yield* bindInsert(node, deps);
    case "update":
      return bindUpdate(node, deps);
    case "delete":
      return bindDelete(node, deps);
    case "with":
    case "with recursive":
      if (isChangeNode(node.in)) {
        return yield* bindStatement(node.in, { ...deps, ...depsWith(node, deps) });
      }
      return { kind: "query", select: yield* bindInSteps(node, deps) };
    default:
      return { kind: "query", select: yield* bindInSteps(node, deps) };
  }
}
