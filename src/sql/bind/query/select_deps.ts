/**
 * Defines the environment in which a query is bound: how names are resolved to relations, and how
 * inner queries are bound.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { VIEW_DEPTH_MAX, VIEWS_MAX } from "../../../base/limits.ts";
import { runToCompletion } from "../../../base/steps.ts";
import {
  type FunctionEntry,
  type Routine,
  rowTypeOfTable,
  type TableEntry,
  type ViewEntry,
  type ViewRights,
} from "../../../catalog/mod.ts";
import type { DataType } from "../../../types/mod.ts";
import type { AstNode, Expr, QName, SelectStatement } from "../../parse/ast/ast.ts";
import { relocated } from "../../parse/ast/tree_parts.ts";
import type { Correlation, ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundCte, BoundRecursion, BoundSelect, SystemView } from "../bound.ts";
import { noteRight, type RowRights } from "../row_rights.ts";
import type { TableParts } from "./table_oid.ts";

/** Resolves names in FROM. */
export interface RelationSource {
  /** The namespace in which a query looks up unqualified names. */
  readonly namespace: string;
  /**
   * Returns the relation with the given name.
   * @throws {DatabaseError} TABLE_NOT_FOUND, NAMESPACE_NOT_FOUND
   */
  table(name: { name: string; schema?: string | undefined }, node: AstNode): TableEntry;
  /**
   * Returns the partitions of a table or, if `within` is given, the partitions within that
   * partition; undefined if they cannot be listed.
   */
  partsOf(tableId: number, within?: number): TableParts | undefined;
  systemView(namespace: string, name: string): SystemView | undefined;
  view(name: { name: string; schema?: string | undefined }): ViewRelation | undefined;
  /** Returns the functions with the given name, which differ in their parameter types. */
  functions(name: { name: string; schema?: string | undefined }): readonly RoutineRelation[];
}

/** A view that a query reads. */
export interface ViewRelation {
  readonly entry: ViewEntry;
  /** The name of the view, as "namespace.name". */
  readonly name: string;
  readonly query: SelectStatement;
  /** The names of the view's columns, one per output of its query. */
  readonly columnNames: readonly string[];
  /**
   * The view columns that are visible to the reader, in this order; undefined if all are visible.
   */
  readonly shown: readonly string[] | undefined;
  /** Resolves names inside the view's query. */
  readonly source: RelationSource;
  /**
   * The rights with which the view's query reads; undefined if the query reads with the rights of
   * the view's reader.
   */
  readonly ownRights: ViewRights | undefined;
  /**
   * How rows written through the view are checked against the conditions of the view; undefined if
   * they are not checked.
   */
  readonly checkOption?: "cascaded" | "local" | undefined;
  /** Set for a partition of a table. */
  readonly partition?: { readonly id: number; readonly tableId: number } | undefined;
}

/** A function written in SQL that a query calls. */
export interface RoutineRelation extends ViewRelation {
  readonly routine: Routine;
  readonly entry: FunctionEntry;
  /** The function's catalog entry if its body is a program. Such a function has no query. */
  readonly program: FunctionEntry | undefined;
  /** The defaults of the input parameters, in order. */
  readonly defaults: readonly (Expr | undefined)[];
}

export interface SelectDeps {
  readonly statement: StatementBinding;
  readonly source: RelationSource;
  /** Decides which rows the query may read in each table. */
  readonly rights: RowRights;
  /**
   * Whether the query is the outermost query. If so, `*` over a single stored table includes the
   * system columns.
   */
  readonly isOutermost: boolean;
  /** Binds a nested query in small steps. */
  readonly bindInSteps: BindInSteps;
  /**
   * Whether untyped literals in the select list stay untyped, because the other side of a set
   * operation or the target column determines their type.
   */
  readonly keepsUntyped?: boolean;
  /** The number of views that enclose the query. */
  readonly viewDepth?: number | undefined;
  /** The WITH entries that a query can refer to, nearest first. */
  readonly ctes?: CteList | undefined;
  /**
   * The correlation with the enclosing expression; absent if the query is not part of an
   * expression.
   */
  readonly outer?: Correlation | undefined;
}

export type BindInSteps = (
  query: SelectStatement,
  deps: SelectDeps,
) => Generator<void, BoundSelect>;

/**
 * Binds a nested query without yielding.
 * @throws {DatabaseError}
 */
export function boundNow(query: SelectStatement, deps: SelectDeps): BoundSelect {
  return runToCompletion(deps.bindInSteps(query, deps));
}

export interface CteList {
  readonly entry: CteEntry;
  readonly others: CteList | undefined;
}

/** The possible meanings of the name of a WITH entry. */
export type CteEntry =
  | {
      readonly kind: "query";
      readonly name: string;
      /** The column names of a WITH entry. */
      readonly names: readonly string[];
      readonly cte: BoundCte;
      /**
       * The number of nested WITH entries and views through which the entry reads, including the
       * entry itself.
       */
      readonly height: number;
      readonly outer: Correlation | undefined;
      /** Binds the WITH entry's query again, with a different context for its outer values. */
      readonly bind: (outer: Correlation | undefined) => BoundSelect;
    }
  | {
      /** The WITH entry as its own recursive side sees it: the rows of the previous step. */
      readonly kind: "working";
      readonly name: string;
      readonly columns: readonly { readonly name: string; readonly type: DataType }[];
      readonly recursion: BoundRecursion;
      readonly outer: Correlation | undefined;
      readonly references: { count: number };
    }
  | {
      /**
       * A change in WITH. Its RETURNING rows are computed before the query that reads them starts.
       */
      readonly kind: "changed";
      readonly name: string;
      /** The RETURNING columns; undefined if the change returns no rows. */
      readonly columns: readonly { readonly name: string; readonly type: DataType }[] | undefined;
      readonly recursion: BoundRecursion;
    }
  /** A WITH entry that the query must not read. */
  | { readonly kind: "forbidden"; readonly name: string };

/** The parts of an expression context that concern inner and outer queries. */
export type QueriesAround = Pick<
  ExpressionContext,
  "bindInner" | "outer" | "routinesNamed" | "rowTypeNamed"
>;

export function queriesAround(deps: SelectDeps): QueriesAround {
  return {
    outer: deps.outer,
    routinesNamed: (name) =>
      deps.source.functions(name).map((relation) => ({
        name: relation.name,
        routine: relation.routine,
        defaults: relation.defaults,
        routinesNamed: queriesAround({ ...deps, source: relation.source }).routinesNamed,
        bindQuery: (outer, node) => bindRoutine(relation, { outer, node }, deps),
        entry: relation.entry,
        program: relation.program,
        enter: (node) => {
          enterStored(relation, { node, kind: "function" }, deps);
        },
      })),
    rowTypeNamed: (name) => rowTypeNamed(name, deps),
    bindInner: (query, outer) =>
      boundNow(query, { ...deps, isOutermost: false, keepsUntyped: false, outer }),
  };
}

/** Returns the row type of a table, for which a statement needs the right to read the table. */
function rowTypeNamed(
  name: QName,
  { rights, source, statement }: SelectDeps,
): DataType | undefined {
  const table = tableNamed(name, source);
  if (table === undefined) return undefined;
  noteRight(table, { rights, statement });
  return rowTypeOfTable(table);
}

/** Returns the table with a name; undefined if there is none. */
export function tableNamed(name: QName, source: RelationSource): TableEntry | undefined {
  try {
    return source.table(name, name);
  } catch (error) {
    // Ignoring the error is safe: it says that no table has the name.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

/**
 * Binds the query of a function. It reads tables with the caller's rights, even inside a view that
 * runs with its owner's rights, because someone else may replace the function's body.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED, and the errors of its query.
 */
function bindRoutine(
  relation: RoutineRelation,
  { node, outer }: { readonly outer: Correlation; readonly node: AstNode },
  deps: SelectDeps,
): BoundSelect {
  const { name, query, source } = relation;
  const { bindInSteps, rights, statement } = deps;
  const viewDepth = enterStored(relation, { node, kind: "function" }, deps);
  const bind = (): BoundSelect =>
    boundNow(relocated(query, node._location), {
      statement,
      source,
      rights: rights.within(undefined),
      bindInSteps,
      isOutermost: false,
      keepsUntyped: true,
      viewDepth,
      outer,
    });
  const bound = statement.within(name, () =>
    statement.named(bind, { name, position: node._location.start }),
  );
  statement.readTower(bound.height);
  return bound.query;
}

/**
 * Counts a view or function whose SQL is bound as part of the statement, and records the right to
 * use it. Returns the nesting depth of views for the queries in its SQL.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function enterStored(
  { name, ownRights }: ViewRelation,
  { kind, node }: { readonly kind: "function" | "view"; readonly node: AstNode },
  { rights, statement, viewDepth: around = 0 }: SelectDeps,
): number {
  const [namespace = ""] = name.split(".");
  const { viewOwner } = rights;
  statement.requirements.push({ action: "read-view", name, namespace, ownRights, viewOwner });
  statement.viewCount += 1;
  if (around < VIEW_DEPTH_MAX && statement.viewCount <= VIEWS_MAX) return around + 1;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    kind === "view"
      ? `Cannot read view ${name}: the statement reads more than ${VIEWS_MAX} views, or views ` +
          `nested more than ${VIEW_DEPTH_MAX} levels deep`
      : `Cannot call function ${name}: the statement calls more than ${VIEWS_MAX} functions, or ` +
          `functions nested more than ${VIEW_DEPTH_MAX} levels deep`,
    {
      position: node._location.start,
      ...(kind === "view" ? {} : { hint: "make sure that no function calls itself" }),
    },
  );
}
