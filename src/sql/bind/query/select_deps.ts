/**
 * Defines the environment in which a query is bound: how names are resolved to relations, and how
 * inner queries are bound.
 */
import { runToCompletion } from "../../../base/steps.ts";
import type { TableEntry, ViewRights } from "../../../catalog/mod.ts";
import type { DataType } from "../../../types/mod.ts";
import type { AstNode, SelectStatement } from "../../parse/ast/ast.ts";
import type { Correlation, ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundCte, BoundRecursion, BoundSelect, SystemView } from "../bound.ts";
import type { RowRights } from "../row_rights.ts";

/** Resolves names in FROM. */
export interface RelationSource {
  /** The namespace in which a query looks up unqualified names. */
  readonly namespace: string;
  /**
   * Returns the relation with this name.
   * @throws {DatabaseError} TABLE_NOT_FOUND, NAMESPACE_NOT_FOUND
   */
  table(name: { name: string; schema?: string | undefined }, node: AstNode): TableEntry;
  systemView(namespace: string, name: string): SystemView | undefined;
  view(name: { name: string; schema?: string | undefined }): ViewRelation | undefined;
}

/** A view that a query reads. */
export interface ViewRelation {
  /** The name of the view, as "namespace.name". */
  readonly name: string;
  readonly query: SelectStatement;
  /** The column names, one for each output of the query. */
  readonly columnNames: readonly string[];
  /** The columns that are visible to the reader, in this order; undefined if all are visible. */
  readonly shown: readonly string[] | undefined;
  /** Resolves the names in the view's query. */
  readonly source: RelationSource;
  /** The rights with which the query is read; undefined for those of the reader. */
  readonly ownRights: ViewRights | undefined;
  /** Whether rows that are written through the view must meet its conditions. */
  readonly checkOption?: "cascaded" | "local" | undefined;
}

export interface SelectDeps {
  readonly statement: StatementBinding;
  readonly source: RelationSource;
  /** The rows that the query may read in each table. */
  readonly rights: RowRights;
  /**
   * Whether the query is the outermost one, in which `*` over one stored table includes the system
   * columns.
   */
  readonly isOutermost: boolean;
  /** Binds a query inside another, in small steps. */
  readonly bindInSteps: BindInSteps;
  /**
   * Whether an untyped literal in the select list stays untyped, because the other side of a set
   * operation or the target column determines its type.
   */
  readonly keepsUntyped?: boolean;
  /** The number of views that enclose the query. */
  readonly viewDepth?: number | undefined;
  /** The WITH entries that a query can name, nearest first. */
  readonly ctes?: CteList | undefined;
  /**
   * The correlation with the enclosing expression; absent if the query is not inside an expression.
   */
  readonly outer?: Correlation | undefined;
}

export type BindInSteps = (
  query: SelectStatement,
  deps: SelectDeps,
) => Generator<void, BoundSelect>;

/** Binds a nested query without yielding. @throws {DatabaseError} */
export function boundNow(query: SelectStatement, deps: SelectDeps): BoundSelect {
  return runToCompletion(deps.bindInSteps(query, deps));
}

export interface CteList {
  readonly entry: CteEntry;
  readonly others: CteList | undefined;
}

/** The query to which a name in WITH refers. */
export type CteEntry =
  | {
      readonly kind: "query";
      readonly name: string;
      /** The names of the columns of a WITH entry. */
      readonly names: readonly string[];
      readonly cte: BoundCte;
      /** How many levels of WITH entries and views the entry reads through, including itself. */
      readonly height: number;
      readonly outer: Correlation | undefined;
      /** Binds the entry's query again, with a different context for its outer values. */
      readonly bind: (outer: Correlation | undefined) => BoundSelect;
    }
  | {
      /** The WITH entry as its own recursive side reads it: the rows of the previous step. */
      readonly kind: "working";
      readonly name: string;
      readonly columns: readonly { readonly name: string; readonly type: DataType }[];
      readonly recursion: BoundRecursion;
      readonly outer: Correlation | undefined;
      readonly references: { count: number };
    }
  | {
      /** A change in WITH. Its RETURNING rows were computed before the query that reads them. */
      readonly kind: "changed";
      readonly name: string;
      /** The columns of RETURNING; undefined if the change returns no rows. */
      readonly columns: readonly { readonly name: string; readonly type: DataType }[] | undefined;
      readonly recursion: BoundRecursion;
    }
  /** The WITH entry, in a place where it must not be read. */
  | { readonly kind: "forbidden"; readonly name: string };

/** Returns the parts of an expression context that concern inner and outer queries. */
export function queriesAround(deps: SelectDeps): Pick<ExpressionContext, "bindInner" | "outer"> {
  return {
    outer: deps.outer,
    bindInner: (query, outer) =>
      boundNow(query, { ...deps, isOutermost: false, keepsUntyped: false, outer }),
  };
}
