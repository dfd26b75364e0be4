/**
 * Runs CREATE NAMESPACE with the definitions that it contains. All objects appear in one commit.
 *
 * As in PostgreSQL, the order in which the definitions are written does not matter: sequences come
 * first, then tables, views, indexes and triggers. Unqualified names in a definition refer to the
 * new namespace.
 */
import { counted } from "../../base/counted.ts";
import type { CreateNamespaceStatement, NamespaceElement } from "../parse/ast/ast.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { DefiningStatement } from "../rights/statement_kinds.ts";

/** The operations of a request that are needed to create a namespace with its objects. */
export interface NamespaceSteps {
  /** The namespace in which the statement runs. */
  readonly namespace: string;
  readonly define: (node: DefiningStatement, namespace: string) => Promise<StatementResult>;
  /** Does work in the request's transaction, or in a transaction of its own if none is open. */
  readonly atomically: (work: () => Promise<StatementResult>) => Promise<StatementResult>;
}

const ORDER: readonly NamespaceElement["type"][] = [
  "create sequence",
  "create table",
  "create view",
  "create index",
  "create trigger",
];

/** Runs CREATE NAMESPACE with definitions. @throws {DatabaseError} */
export function createWithElements(
  node: CreateNamespaceStatement,
  elements: readonly NamespaceElement[],
  { atomically, define, namespace }: NamespaceSteps,
): Promise<StatementResult> {
  const { name } = node.name;
  return atomically(async () => {
    const created = await define(node, namespace);
    for (const type of ORDER) {
      for (const element of elements) if (element.type === type) await define(element, name);
    }
    const message = `Namespace ${name} created with ${counted(elements.length, "object")}`;
    return { ...created, message };
  });
}
