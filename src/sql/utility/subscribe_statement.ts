/**
 * Implements SUBSCRIBE TO and EXPLAIN SUBSCRIBE TO. The former shows the message that a client
 * sends to follow a query. The latter shows how changes to the query's tables would be matched
 * against it. No subscription is opened, and no changes are streamed.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError, withDetails } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { TEXT } from "../../types/mod.ts";
import type { SubscribeStatement } from "../parse/ast/ast.ts";
import { expressionToSql } from "../parse/print/print.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { LivePlan, SqlParameter, StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { LiveMatch, ResultMatch } from "../ports/ports.ts";
import { maintainedPlanOf, planFollowedQuery, type WholeQuery } from "../prepare/followed_query.ts";
import { type LivePlanDeps, NotRowByRow, planLiveQuery } from "../prepare/live_planner.ts";
import { type PlainColumn, rowsResult } from "../result/result.ts";
import type { AdministrationCall } from "./administration.ts";

const SUBSCRIBE_COLUMNS: readonly PlainColumn[] = [
  "status",
  "ws_url",
  "subscription",
  "message",
].map((name) => ({ name, type: TEXT }));

const EXPLAIN_COLUMNS: readonly PlainColumn[] = [{ name: "plan", type: TEXT }];

/** The valid options of a subscription, each with a pattern for its value in SQL. */
const OPTION_FORMS: ReadonlyMap<string, RegExp> = new Map([
  ["batch_size", /^[1-9]\d*$/],
  ["last_rows", /^\d+$/],
  ["from", /^\d+$/],
  ["from_seq_id", /^\d+$/],
]);

/**
 * Returns the address and the message with which a client can subscribe to the query.
 * @throws {DatabaseError} INVALID_OPTION, and the errors with which a subscription is refused.
 */
export function subscribe(
  deps: LivePlanDeps,
  node: SubscribeStatement,
  call: AdministrationCall,
): StatementResult {
  const { namespace, params, principal, server } = call;
  const options = optionsOf(node);
  planOf(deps, node, call);
  const id = `sub${deps.store.snowflakeId()}`;
  const parts = {
    id: JSON.stringify(id),
    sql: JSON.stringify(node.source),
    ...(params.length > 0 && { params: `[${params.map(jsonOf).join(",")}]` }),
    options: JSON.stringify(options),
    ...(isQualified(node) ? {} : { namespace_id: JSON.stringify(namespace) }),
  };
  const members = Object.entries(parts).map(([name, json]) => `"${name}":${json}`);
  const subscription = `{${members.join(",")}}`;
  const wsUrl = `${(server?.publicUrl ?? "").replace(/^http/, "ws")}/v1/ws`;
  const message = `Connect to ${wsUrl}, authenticate, and send this subscription`;
  const row = ["active", wsUrl, subscription, message];
  return rowsResult(SUBSCRIBE_COLUMNS, [row], principal.userId);
}

/**
 * Returns the explanation of how a query would be followed, one line per row. @throws
 * {DatabaseError} See {@linkcode subscribe}.
 */
export function explainSubscribe(
  deps: LivePlanDeps & Pick<SqlEnvironment, "live">,
  node: SubscribeStatement,
  call: AdministrationCall,
): StatementResult {
  const { principal } = call;
  optionsOf(node);
  const planned = planOf(deps, node, call);
  const lines =
    "query" in planned
      ? resultLines(planned, deps.live().matchResult(planned.query.fingerprint))
      : rowLines(deps, node, { plan: planned.plan, userId: principal.userId });
  return rowsResult(
    EXPLAIN_COLUMNS,
    lines.map((line) => [line]),
    principal.userId,
  );
}

function rowLines(
  deps: LivePlanDeps & Pick<SqlEnvironment, "live">,
  { query }: SubscribeStatement,
  { plan, userId }: { plan: LivePlan; userId: string },
): string[] {
  const table = deps.catalog.tableById(plan.tableId);
  const where = query.type === "select" ? query.where : undefined;
  return [
    `Live query on ${plan.tableName}`,
    `  rows: ${table?.kind === "shared" ? "shared by all users" : `of ${userId}`}`,
    `  columns read: ${columnNames(plan, table)}`,
    `  filter: ${where === undefined ? "none" : expressionToSql(where)}`,
    ...matchLines(plan, table, deps.live().match(plan)),
  ];
}

/**
 * A query whose result would be materialised, and the clause that prevents following the query row
 * by row.
 */
interface PlannedResult {
  readonly query: WholeQuery;
  readonly part: string;
}

function resultLines({ part, query }: PlannedResult, match: ResultMatch | undefined): string[] {
  const { tables, text } = query;
  const { fields, keyFields, sort } = text;
  const nameOf = (field: number): string => nameText(fields[field]?.name ?? "?");
  const names = tables.map(({ name, owner }) =>
    owner === SHARED_OWNER ? name : `${name} (own rows)`,
  );
  const terms = sort.map(({ areNullsFirst, field, isDescending }) => {
    const direction = isDescending ? "DESC" : "ASC";
    return `${nameOf(field)} ${direction} NULLS ${areNullsFirst ? "FIRST" : "LAST"}`;
  });
  const plan = maintainedPlanOf(query);
  const when = `after a commit that changes one of these tables${timesOf(query)}`;
  const way =
    typeof plan === "string"
      ? [`  evaluated: ${when}, for at most a quarter of the time`, `    because ${plan}`]
      : [
          "  maintained: from the changes to these tables",
          ...plan.shared.query.describe().map((line) => `    ${line}`),
        ];
  const { costMs, evaluations = 0, followed = 0, stateBytes = 0, subscriptions = 0 } = match ?? {};
  const cost = costMs === undefined ? "not known yet" : `${costMs.toFixed(1)} ms`;
  return [
    `The live query is materialised because it has ${part}`,
    `  reads: ${names.length === 0 ? "no table" : names.join(", ")}`,
    `  row key: ${keyOf(keyFields, nameOf)}`,
    `  order: ${terms.length === 0 ? "none" : terms.join(", ")}`,
    ...way,
    `  cost per evaluation: ${cost}`,
    `  so far: ${counted(evaluations, "evaluation")}, and ${counted(followed, "step")} without ` +
      "an evaluation",
    `  group: ${stateBytes} bytes of rows, shared by ${counted(subscriptions, "open subscription")}`,
  ];
}

function timesOf({ nextChanges, text: { changesByTime } }: WholeQuery): string {
  const times = [
    ...(changesByTime ? ["every second"] : []),
    ...(nextChanges.length > 0 ? ["when a comparison with the clock changes over time"] : []),
  ];
  return times.map((time) => `, and ${time}`).join("");
}

function keyOf(
  keyFields: readonly number[] | undefined,
  nameOf: (field: number) => string,
): string {
  if (keyFields === undefined) return "its values";
  return keyFields.length === 0
    ? "none, because there is only a single row"
    : keyFields.map(nameOf).join(", ");
}

/** Plans the query to be followed. Error positions refer to the request's SQL. */
function planOf(
  deps: LivePlanDeps,
  { _location, source, sourceStart }: SubscribeStatement,
  { ledger, namespace, params, principal }: AdministrationCall,
): PlannedResult | { readonly plan: LivePlan } {
  const request = { sql: source, params, namespace };
  const caller = { principal, ledger };
  try {
    try {
      return { plan: planLiveQuery(deps, request, caller) };
    } catch (error) {
      if (!(error instanceof NotRowByRow)) throw error;
      return { query: planFollowedQuery(deps, request, caller), part: error.part };
    }
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.position === undefined) throw error;
    throw withDetails(error, {
      position: Math.max(_location.start, sourceStart + error.position),
    });
  }
}

/** Returns the value of a parameter as JSON. Numbers keep all their digits. */
function jsonOf(parameter: SqlParameter): string {
  if (typeof parameter !== "object" || parameter === null) return JSON.stringify(parameter);
  return "json" in parameter ? parameter.json : parameter.number;
}

function matchLines(plan: LivePlan, table: TableEntry | undefined, match: LiveMatch): string[] {
  const { equality } = plan;
  const column = table?.columns.find(({ columnId }) => columnId === equality?.columnId);
  const index =
    equality === undefined
      ? "none, so every change to these rows is tested"
      : `${nameText(column?.name ?? "?")} = ${JSON.stringify(equality.value)}, looked up by value`;
  return [
    `  index: ${index}`,
    `  group: shared by ${counted(match.subscriptions, "open subscription")}, evaluated once for all`,
    `  cost: ${equality === undefined ? "a change" : "a change with this value"} is tested against ` +
      `${match.testedGroups} of ${counted(match.groups, "group")}, ${match.unindexedGroups} of them unindexed`,
  ];
}

function columnNames({ columnIds }: LivePlan, table: TableEntry | undefined): string {
  const names = table?.columns
    .filter(({ columnId }) => columnIds.includes(columnId))
    .map(({ name }) => name);
  return names === undefined || names.length === 0 ? "none" : names.join(", ");
}

function isQualified({ query }: SubscribeStatement): boolean {
  const from = query.type === "select" ? query.from?.[0] : undefined;
  return from?.type === "table" && from.name.schema !== undefined;
}

function optionsOf(node: SubscribeStatement): Record<string, string | number> {
  const options: Record<string, string | number> = {};
  for (const { name, value, _location } of node.options ?? []) {
    if (Object.hasOwn(options, name)) {
      throw new DatabaseError("INVALID_OPTION", `Cannot set option ${name} twice`, {
        position: _location.start,
      });
    }
    const given = value.type === "integer" || value.type === "string" ? value.value : undefined;
    const isKnown = OPTION_FORMS.get(name)?.test(String(given)) === true;
    // A number that is not a safe integer would be rounded when it is sent, and would then not be
    // a valid position in the commit order.
    const isExact = Number.isSafeInteger(Number(given));
    if (given === undefined || !isKnown || !isExact) {
      throw new DatabaseError(
        "INVALID_OPTION",
        `Cannot use option ${name} with SUBSCRIBE TO: the option is unknown, or its value is ` +
          "not a whole number",
        {
          position: _location.start,
          hint:
            "the options are last_rows, batch_size, from and from_seq_id; each takes a whole " +
            "number",
        },
      );
    }
    // The position from which a subscription starts is passed on as a string, because some
    // clients' numbers cannot hold all of its digits.
    options[name] = name.startsWith("from") ? given : Number(given);
  }
  return options;
}
