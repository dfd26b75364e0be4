/**
 * What a query is bound in: the world behind its names, and how inner queries are bound.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import type { AstNode, SelectStatement } from "../parse/ast.ts";
import type { StatementBinding } from "./binding.ts";
import type { BoundSelect, SystemRows } from "./bound.ts";

/** A view of the system or information_schema namespace. */
export interface SystemView {
  readonly columns: readonly { readonly name: string; readonly type: DataType }[];
  readonly rows: SystemRows;
  /** Readable by every role, filtered to the caller. */
  readonly isOpen: boolean;
}

/** Where names of FROM lead. */
export interface RelationSource {
  /** Namespace of unqualified names. */
  readonly namespace: string;
  /** @throws {DatabaseError} TABLE_NOT_FOUND, NAMESPACE_NOT_FOUND */
  table(name: { name: string; schema?: string | undefined }, node: AstNode): TableEntry;
  systemView(namespace: string, name: string): SystemView | undefined;
}

export interface SelectContext {
  readonly statement: StatementBinding;
  readonly source: RelationSource;
  /** The outermost block: `*` of one stored table shows the system columns. */
  readonly isOutermost: boolean;
}

/** Binds a query inside another; FROM calls back through this. */
export type BindQuery = (query: SelectStatement, context: SelectContext) => BoundSelect;
