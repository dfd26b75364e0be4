/**
 * Defines the request, the dependencies and the checks that CREATE, ALTER and DROP TABLE have in
 * common.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { shownKindOf, type TableEntry } from "../../catalog/mod.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { QName, Statement } from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";

/** The request that creates, alters or drops a table. */
export interface TableCall {
  readonly principal: Principal;
  /** The namespace in which the statement looks up unqualified names. */
  readonly namespace: string;
  readonly ledger: RequestLedger;
}

export interface TableDeps
  extends BindingDeps,
    ExecutionDeps,
    Pick<SqlEnvironment, "blobs" | "definitionOf" | "jobs" | "log" | "storages" | "writeGates">,
    DefinitionFollowers {
  /** Accepts work that must wait until the commit; absent outside a transaction. */
  readonly afterCommit?: ((work: (deps: DroppedFileDeps) => Promise<void>) => void) | undefined;
}

/** The parts of the database needed to remove the files of dropped tables. */
export type DroppedFileDeps = Pick<SqlEnvironment, "blobs" | "catalog" | "clock" | "log">;

/** Returns a name qualified with its namespace. */
export function qualifiedName(name: QName, namespace: string): string {
  return `${name.schema ?? namespace}.${name.name}`;
}

/**
 * Requires that the table is of the kind named by the ALTER or DROP statement.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function requireKind(kind: string | undefined, table: TableEntry, node: Statement): void {
  const own = shownKindOf(table);
  if (kind === undefined || kind.toUpperCase() === own) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot use ${table.namespace}.${table.name} as a ${kind.toUpperCase()} table: it is ${own}`,
    { position: node._location.start },
  );
}
