/**
 * Binds materialised queries. The result of such a query is either maintained from the changes to
 * its tables, or evaluated again after each change.
 *
 * The query becomes an ordinary statement. Columns that identify or sort the rows are added to its
 * select list, unless they are already there. A bound query does not depend on the caller or on
 * parameter values, so all subscribers with the same SQL share it. Invariant: two evaluations with
 * the same values, at the same seq and time, return the same rows. A query may compare the time
 * with a column, because the time of the next change can then be computed. All other functions
 * whose values change without a commit are rejected.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { putNewest } from "../../base/newest.ts";
import { seqFromUnixMs } from "../../base/seq.ts";
import { shortKey } from "../../base/short_key.ts";
import type { Catalog, ViewEntry } from "../../catalog/mod.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import { type DataType, exactCellMakerFor, typeName } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundSelect, Requirement } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { expressionsIn, relationsIn } from "../bind/query/query_walk.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { childrenOf } from "../bind/walk.ts";
import type { AstNode, SelectStatement, Statement } from "../parse/ast/ast.ts";
import { changesRows, isSelectNode } from "../parse/ast/query_nodes.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import type { ResultPlan, ResultSort } from "../ports/engine.ts";
import { requireNoGap } from "../ports/parameters.ts";
import { CellRows } from "../result/result.ts";
import { authorize, meetsAll, viewOwnersOf } from "../rights/requirements.ts";
import { dmlDepsOf, statisticsOf } from "./binding_deps.ts";
import { type ClockTerms, clockTermsOf } from "./clock_terms.ts";
import { type ExpiringSource, expiringSourcesOf } from "./expired_rows.ts";
import {
  fieldsWithNames,
  keyFieldsOf,
  sortForClients,
  windowTermsOf,
  withHiddenColumns,
  withRowSeq,
  withTotalOrder,
} from "./followed_select.ts";
import {
  type CallExpression,
  FIXED_FUNCTIONS,
  followedNode,
  type LiveCaller,
  type LivePlanDeps,
} from "./live_planner.ts";
import { MaintainedPlans } from "./maintained_plans.ts";
import { boundFor, type PreparedQuery, prepare } from "./prepared.ts";
import { watchOf } from "./statement_watch.ts";
import { mayReadTombstones } from "./tombstone_reads.ts";

/** A materialised query that has been bound, but not for a particular subscriber. */
export interface FollowedText {
  readonly sql: string;
  /** The query of the subscription, as the client wrote it. */
  readonly written: SelectStatement;
  readonly node: SelectStatement;
  readonly select: BoundSelect;
  readonly types: readonly DataType[];
  readonly namespace: string;
  readonly prepared: PreparedQuery;
  readonly changesByTime: boolean;
  /** Whether the rows depend on the caller even if all tables of the query are SHARED. */
  readonly isOfCaller: boolean;
  /** Whether the query or a policy of its tables reads the claims in the caller's token. */
  readonly readsClaims: boolean;
  /** The fields of a result row. Their names are unique. */
  readonly fields: readonly SchemaField[];
  /**
   * The indexes of the fields that identify a row; undefined if only all of its values together
   * identify it.
   */
  readonly keyFields: readonly number[] | undefined;
  /** The meaning of the seq at the end of each row, which is not a field. */
  readonly rowSeq: ResultPlan["rowSeq"];
  readonly sort: readonly ResultSort[];
  /** The tables whose rows expire at a certain age. */
  readonly expiring: readonly ExpiringSource[];
  /** The seq of the newest change to a view in the query; 0 if the query reads no view. */
  readonly viewsChangedSeq: number;
  readonly viewOwners: ResultPlan["viewOwners"];
  /** The conditions of the query that compare a value with the current time. */
  readonly clockTerms: ClockTerms;
  /** Whether a user may currently read the rows of the live query. */
  readonly mayRead: (principal: Principal) => boolean;
  readonly maintained: Pick<MaintainedPlans, "newContexts" | "planFor">;
}

/** The values on which a bound query depends, apart from the definitions in the catalog. */
export interface TextPlace {
  readonly sql: string;
  readonly types: readonly DataType[];
  readonly namespace: string;
}

/**
 * The maximum number of bound queries to keep for later subscriptions. The bound queries of open
 * subscriptions are kept in addition.
 */
const TEXTS_MAX = 256;

/** Keeps the most recently used bound queries, which later subscribers can share. */
export class FollowedTexts {
  readonly #catalog: Pick<Catalog, "version">;
  readonly #texts = new Map<string, FollowedText>();
  #catalogVersion = 0;

  constructor(catalog: Pick<Catalog, "version">) {
    this.#catalog = catalog;
  }

  find(place: TextPlace): FollowedText | undefined {
    const { version } = this.#catalog;
    if (version !== this.#catalogVersion) this.#texts.clear();
    this.#catalogVersion = version;
    return this.#texts.get(keyOf(place));
  }

  remember(place: TextPlace, text: FollowedText): void {
    putNewest(this.#texts, [keyOf(place), text], TEXTS_MAX);
  }
}

function keyOf({ namespace, sql, types }: TextPlace): string {
  return shortKey(JSON.stringify([namespace, types.map(typeName), sql]));
}

/**
 * Binds and prepares a query within one tick of the event loop.
 *
 * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
 */
export function newFollowedText(
  deps: LivePlanDeps,
  { namespace, sql, types }: TextPlace,
  { ledger, principal }: Pick<LiveCaller, "ledger" | "principal">,
): FollowedText {
  const { catalog, limits } = deps;
  const parsed = selectIn(sql, { limits, parameterCount: types.length });
  const written = withTypes(parsed, typesIn(catalog, namespace));
  const watch = watchOf(ledger, deps);
  const statistics = statisticsOf(deps);
  const newStatement = (): StatementBinding => new StatementBinding(types, { statistics, watch });
  const bound = (node: SelectStatement): BoundSelect => {
    const statement = newStatement();
    const dmlDeps = dmlDepsOf(deps, { namespace, principal, statement });
    return boundFor({ catalog, principal, statement }, () => bindQuery(node, dmlDeps));
  };
  const completed = withTotalOrder(withHiddenColumns(written, bound), bound);
  const { sortCount } = completed;
  const { node, rowSeq, select } = withRowSeq(completed, bound);
  const statement = newStatement();
  const dmlDeps = dmlDepsOf(deps, { namespace, principal, statement });
  const prepared = prepare(node, { deps: dmlDeps, statement });
  if (prepared.kind !== "query") throw notFollowed(written, "a statement that changes rows");
  requireNoGap(statement.usedParameters, types.length);
  const { requirements } = prepared;
  authorize(requirements, principal, catalog);
  readLiterals(prepared.literals);
  const readsSystemViews = requirements.some(({ action }) => action === "read-system");
  const changesByTime = readsSystemViews || requirements.some(mayExpire);
  const clockTerms = clockTermsOf(select);
  const { calls, stepCalls } = callsIn(select);
  const called = [...calls, ...stepCalls].map(({ name }) => name);
  return {
    sql,
    written,
    node,
    select,
    types,
    namespace,
    prepared: { ...prepared, cells: new CellRows(prepared.cells.types, exactCellMakerFor) },
    changesByTime,
    isOfCaller:
      readsSystemViews ||
      mayReadTombstones(prepared) ||
      called.some((name) => FIXED_FUNCTIONS.has(name)),
    readsClaims: called.includes("claim"),
    fields: fieldsWithNames(
      (prepared.fields ?? []).slice(0, rowSeq === undefined ? undefined : -1),
    ),
    rowSeq,
    keyFields: keyFieldsOf(select),
    sort: sortForClients(select).slice(0, sortCount),
    expiring: expiringSourcesOf(select),
    viewsChangedSeq: statement.viewCount === 0 ? 0 : newestChangeOf(catalog.storedQueries()),
    viewOwners: viewOwnersOf(requirements),
    clockTerms,
    mayRead: (reader) => mayReadNow(catalog, requirements, reader),
    maintained: new MaintainedPlans(deps, {
      node,
      types,
      namespace,
      changesByTime: changesByTime || clockTerms.terms.length > 0,
      readsTombstones: mayReadTombstones(prepared),
      callsPrograms: [...stepCalls].some(({ program }) => program !== undefined),
      hasKey: keyFieldsOf(select) !== undefined,
      hasRowSeq: rowSeq !== undefined,
      terms: windowTermsOf(select),
    }),
  };
}

/** Whether a user may read the rows of a live query, according to the user's current role. */
function mayReadNow(
  catalog: LivePlanDeps["catalog"],
  requirements: readonly Requirement[],
  reader: Principal,
): boolean {
  const user = catalog.accounts.user(reader.userId);
  return user !== undefined && meetsAll(requirements, { ...reader, role: user.role }, catalog);
}

/**
 * Parses SQL that must consist of a single query.
 *
 * @throws {DatabaseError}
 */
function selectIn(sql: string, options: Parameters<typeof followedNode>[1]): SelectStatement {
  const written = followedNode(sql, options);
  if (!isSelectNode(written)) throw notFollowed(written, written.type.toUpperCase());
  if (changesRows(written)) throw notFollowed(written, "a statement that changes rows");
  refuseHistory(written);
  return written;
}

function notFollowed(node: Statement, what: string): DatabaseError {
  return new DatabaseError("INVALID_SQL", `Cannot subscribe to ${what}`, {
    position: node._location.start,
    hint: "a live query must be a single SELECT, which may begin with WITH",
  });
}

function refuseHistory(node: AstNode): void {
  for (const part of partsOf([node])) {
    const { systemTime }: { readonly systemTime?: AstNode } = part;
    if (systemTime === undefined) continue;
    throw new DatabaseError(
      "INVALID_SQL",
      "Cannot subscribe to a query with FOR SYSTEM_TIME: its rows would never change",
      {
        position: systemTime._location.start,
        hint: "run the query once, without a subscription",
      },
    );
  }
}

function newestChangeOf(views: readonly ViewEntry[]): number {
  const seqs = views.map(({ changedSeq, updatedAtMs }) => {
    return changedSeq ?? seqFromUnixMs(updatedAtMs + 1);
  });
  return Math.max(0, ...seqs);
}

/** Whether rows of a required table may disappear without a commit. */
function mayExpire(requirement: Requirement): boolean {
  return "table" in requirement && requirement.table.kind === "stream";
}

/** The calls in a query. */
export interface QueryCalls {
  /** The calls in expressions. */
  readonly calls: ReadonlySet<CallExpression>;
  /** The calls in the functions of user-defined aggregates. */
  readonly stepCalls: ReadonlySet<CallExpression>;
}

/** Returns every call in a query, its WITH entries and its subqueries. */
export function callsIn(select: BoundSelect): QueryCalls {
  const calls = new Set<CallExpression>();
  const stepCalls = new Set<CallExpression>();
  const seen = new Set<BoundSelect>();
  const visit = (query: BoundSelect): void => {
    if (seen.has(query)) return;
    seen.add(query);
    for (const expression of expressionsIn(query)) visitExpression(expression, calls);
    for (const expression of stepsIn(query)) visitExpression(expression, stepCalls);
    for (const relation of relationsIn(query))
      if (relation.kind === "cte") visit(relation.cte.query);
  };
  const visitExpression = (expression: BoundExpression, found: Set<CallExpression>): void => {
    if (expression.kind === "call") found.add(expression);
    if (expression.kind === "subquery") visit(expression.subquery.query);
    for (const child of childrenOf(expression)) visitExpression(child, found);
  };
  visit(select);
  return { calls, stepCalls };
}

/** Returns the calls of the functions of a block's user-defined aggregates. */
function stepsIn({ aggregates, windows }: BoundSelect): BoundExpression[] {
  const ofWindows = windows.map(({ form }) => (form.kind === "aggregate" ? form.steps : undefined));
  return [...aggregates.map(({ steps }) => steps), ...ofWindows]
    .flatMap((steps) => [steps, steps?.moving])
    .flatMap((steps) => [steps?.transition, steps?.inverse, steps?.final])
    .flatMap((step) => (step === undefined ? [] : [step.expression]));
}
