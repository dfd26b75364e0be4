/**
 * What a query is bound in: the world behind its names, and how inner queries are bound.
 */
import { inOneTurn } from "../../../base/steps.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import type { DataType } from "../../../types/mod.ts";
import type { AstNode, SelectStatement } from "../../parse/ast/ast.ts";
import type { Correlation, Place, StatementBinding } from "../binding.ts";
import type { BoundCte, BoundRecursion, BoundSelect, SystemView } from "../bound.ts";

/** Where names of FROM lead. */
export interface RelationSource {
  /** Namespace of unqualified names. */
  readonly namespace: string;
  /** @throws {DatabaseError} TABLE_NOT_FOUND, NAMESPACE_NOT_FOUND */
  table(name: { name: string; schema?: string | undefined }, node: AstNode): TableEntry;
  systemView(namespace: string, name: string): SystemView | undefined;
  view(name: { name: string; schema?: string | undefined }): ViewRelation | undefined;
}

/** A stored view. */
export interface ViewRelation {
  /** "namespace.name". */
  readonly name: string;
  readonly query: SelectStatement;
  /** One for each output of the query. */
  readonly columnNames: readonly string[];
  /** The names that its reader knows, in the order that it knows; undefined for all. */
  readonly shown: readonly string[] | undefined;
  /** Where the names in its query lead. */
  readonly source: RelationSource;
}

export interface SelectWorld {
  readonly statement: StatementBinding;
  readonly source: RelationSource;
  /** The outermost block: `*` of one stored table shows the system columns. */
  readonly isOutermost: boolean;
  /** Binds a query inside another, in small steps. */
  readonly bindInSteps: BindInSteps;
  /**
   * An untyped literal in the select list stays so: the other side of a set operation, or the
   * column that it goes to, types it.
   */
  readonly keepsUntyped?: boolean;
  /** How many views are around the query. */
  readonly viewDepth?: number | undefined;
  /** What WITH names, the nearest first. */
  readonly ctes?: CteList | undefined;
  /** The expression around the query. */
  readonly outer?: Correlation | undefined;
}

export type BindInSteps = (
  query: SelectStatement,
  world: SelectWorld,
) => Generator<void, BoundSelect>;

/** Binds a query inside another in this turn. @throws {DatabaseError} */
export function boundNow(query: SelectStatement, world: SelectWorld): BoundSelect {
  return inOneTurn(world.bindInSteps(query, world));
}

export interface CteList {
  readonly entry: CteEntry;
  readonly others: CteList | undefined;
}

/** What a name of WITH stands for. */
export type CteEntry =
  | {
      readonly kind: "query";
      readonly name: string;
      /** Of its columns. */
      readonly names: readonly string[];
      readonly cte: BoundCte;
      /** How many entries of WITH and views it is read through, itself among them. */
      readonly height: number;
      readonly outer: Correlation | undefined;
      /** Binds its query once more, with other ways to what it reads around it. */
      readonly bind: (outer: Correlation | undefined) => BoundSelect;
    }
  | {
      /** The entry within its own recursive side. */
      readonly kind: "working";
      readonly name: string;
      readonly columns: readonly { readonly name: string; readonly type: DataType }[];
      readonly recursion: BoundRecursion;
      readonly outer: Correlation | undefined;
      readonly references: { count: number };
    }
  /** The entry where it may not read itself. */
  | { readonly kind: "forbidden"; readonly name: string };

/** What a place in a query knows of the queries inside and around it. */
export function queriesAround(world: SelectWorld): Pick<Place, "bindInner" | "outer"> {
  return {
    outer: world.outer,
    bindInner: (query, outer) =>
      boundNow(query, { ...world, isOutermost: false, keepsUntyped: false, outer }),
  };
}
