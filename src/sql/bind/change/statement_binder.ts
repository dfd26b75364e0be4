/**
 * Binds a statement of rows, whichever kind it is.
 */
import type { QueryStatement } from "../../parse/ast/ast.ts";
import { isChangeNode } from "../../parse/ast/query_nodes.ts";
import type { BoundSelect } from "../bound.ts";
import { bindInSteps } from "../query/select_binder.ts";
import { worldWith } from "../query/with_binder.ts";
import type { DmlWorld } from "./dml_target.ts";
import { type BoundInsert, bindInsert } from "./insert_binder.ts";
import { type BoundDelete, type BoundUpdate, bindDelete, bindUpdate } from "./update_binder.ts";

export type BoundChange = BoundInsert | BoundUpdate | BoundDelete;

export type BoundStatement = BoundChange | { readonly kind: "query"; readonly select: BoundSelect };

/** Binds in small steps. @throws {DatabaseError} */
export function* bindStatement(
  node: QueryStatement,
  world: DmlWorld,
): Generator<void, BoundStatement> {
  switch (node.type) {
    case "insert":
      return yield* bindInsert(node, world);
    case "update":
      return bindUpdate(node, world);
    case "delete":
      return bindDelete(node, world);
    case "with":
    case "with recursive":
      if (isChangeNode(node.in)) {
        return yield* bindStatement(node.in, { ...world, ...worldWith(node, world) });
      }
      return { kind: "query", select: yield* bindInSteps(node, world) };
    default:
      return { kind: "query", select: yield* bindInSteps(node, world) };
  }
}
