/**
 * Implements EXPLAIN, which shows the plan of a statement as a tree, either as text or as a JSON
 * document. ANALYZE adds measurements of an execution.
 *
 * The output shows the caller's literals. Its row counts include only rows that the caller may
 * see.
 */

import type { Principal } from "../../auth/mod.ts";
import { millisecondsText } from "../../base/number_text.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { SEQ_COLUMN_ID, type Store } from "../../storage/mod.ts";
import { type Row, TEXT } from "../../types/mod.ts";
import type { BoundTableFunction } from "../bind/bound.ts";
import type { BoundExpression, BoundSort, BoundWindowCall } from "../bind/bound_expressions.ts";
import type { Measured, Profile } from "../execute/context/profile.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import { plansOfSubquery } from "../execute/subquery/subquery_program.ts";
import type { ExplainStatement } from "../parse/ast/ast.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { keyCountOf } from "../plan/access.ts";
import { estimatedRows, type Known } from "../plan/estimate.ts";
import { isAskedOnce } from "../plan/folding.ts";
import { extremeKeysOf, indexOrderOf } from "../plan/ordered_input.ts";
import type { PlanNode, PlannedRange, ScanNode, SoughtKeys } from "../plan/plan.ts";
import { inputsOf, isByKey, ownSubqueries } from "../plan/plan_walk.ts";
import { planOfCte } from "../plan/planner.ts";
import { type RuntimeFilter, runtimeFilterOf } from "../plan/runtime_filter.ts";
import type { StatementResult } from "../ports/engine.ts";
import { rowsResult } from "../result/result.ts";
import { type Slots, textOfExpression } from "./explain_expression.ts";
import { textOfIndexes } from "./explain_index.ts";
import type { Prepared, PreparedPart } from "./prepared.ts";

/**
 * A node of the plan tree that EXPLAIN prints. Its fields are shown in the order of the
 * properties.
 */
interface ExplainNode {
  readonly node: string;
  readonly table?: string;
  /** The access path to the table; present only for nodes that read a table. */
  readonly access?: ShownAccess;
  readonly [detail: string]: unknown;
  readonly children: readonly ExplainNode[];
}

type ShownAccess = "key" | "index" | "key_range" | "seq_range" | "scan" | "function" | "values";

type StepNode = Extract<
  PlanNode,
  { kind: "filter" | "project" | "expand" | "aggregate" | "distinct" | "window" | "sort" | "limit" }
>;

export interface ExplainCall {
  readonly principal: Principal;
  readonly slots: Slots;
  /** The measurements of EXPLAIN ANALYZE. */
  readonly profile: Profile | undefined;
  /** The result of the explained statement, if it was run. */
  readonly outcome: StatementResult | undefined;
  readonly tookMs: number;
}

export function explained(
  { format, verbose }: ExplainStatement,
  prepared: Prepared,
  { call, store }: { call: ExplainCall; store: Store },
): StatementResult {
  const tree = new Explainer(store, call, verbose).statement(prepared);
  const { profile } = call;
  const rows: Row[] =
    format === "json"
      ? [[JSON.stringify({ ...placeFields(profile), ...tree }, withDecimals)]]
      : [...linesOf(tree), ...placeLines(profile)].map((line) => [line]);
  return rowsResult([{ name: "plan", type: TEXT }], rows, call.principal.userId);
}

class Explainer {
  readonly #call: ExplainCall;
  readonly #isVerbose: boolean;
  readonly #known: Known;
  readonly #shown = new Set<unknown>();
  readonly #rowCounts = new Map<TableEntry, number>();

  constructor(store: Store, call: ExplainCall, isVerbose: boolean) {
    this.#call = call;
    this.#isVerbose = isVerbose;
    this.#known = {
      rowsOf: (table) => {
        // Every node above a scan needs the table's row count, and the store would recompute the
        // count for each call.
        const known = this.#rowCounts.get(table);
        if (known !== undefined) return known;
        const count = store.liveRowCount(table.tableId, ownerOf(call.principal, table));
        this.#rowCounts.set(table, count);
        return count;
      },
      countOf: (expression) => {
        const value =
          expression.kind === "constant"
            ? expression.value
            : expression.kind === "slot"
              ? call.slots[expression.slot]
              : expression.kind === "cast"
                ? this.#known.countOf(expression.operand)
                : undefined;
        return typeof value === "number" || typeof value === "string" ? Number(value) : undefined;
      },
      cteRows: new Map(),
      nodeRows: new Map(),
    };
  }

  statement(prepared: Prepared): ExplainNode {
    if (prepared.kind === "query") return this.#node(prepared.plan);
    const { outcome, tookMs } = this.#call;
    const measured = outcome === undefined ? {} : { rows: outcome.rowCount, loops: 1, ms: tookMs };
    const changes = prepared.changes.map((change) => this.#change(change));
    const [only] = changes;
    if (!prepared.isOfParts && only !== undefined) return { ...only, ...measured };
    const { mainPlan } = prepared;
    const main = mainPlan === undefined ? [] : [this.#node(mainPlan)];
    return { node: "Parts", ...measured, children: [...changes, ...main] };
  }

  #change({ kind, name, plan, target }: PreparedPart): ExplainNode {
    return {
      node: kind[0]?.toUpperCase() + kind.slice(1),
      table: `${target.namespace}.${target.name}`,
      ...(name === undefined ? {} : { entry: name }),
      children: plan === undefined ? [] : [this.#node(plan)],
    };
  }

  #node(plan: PlanNode): ExplainNode {
    const measured = this.#call.profile?.of(plan);
    const { children, node, ...details } = this.#described(plan);
    const subplans = ownSubqueries(plan).flatMap((subquery) => {
      if (this.#shown.has(subquery)) return [];
      this.#shown.add(subquery);
      return plansOfSubquery(subquery).map(
        (root): ExplainNode => ({
          node: "Subquery",
          form: subquery.form.kind,
          children: [this.#node(root)],
        }),
      );
    });
    return {
      node,
      ...details,
      estimated_rows: estimatedRows(plan, this.#known),
      ...(this.#isVerbose ? { output: plan.columns.map(({ name }) => name) } : {}),
      ...(this.#call.profile === undefined ? {} : measuredFields(plan, measured)),
      children: [...children, ...subplans],
    };
  }

  #described(plan: PlanNode): ExplainNode {
    switch (plan.kind) {
      case "single":
        return { node: "Result", access: "values", children: [] };
      case "scan":
        return this.#scan(plan);
      case "system":
        return { node: "System View", table: plan.name, access: "function", children: [] };
      case "changes": {
        const { past, upTo } = plan.changes;
        const { name, namespace } = past.table;
        return {
          node: "Changes",
          table: `${namespace}.${name}`,
          access: "seq_range",
          after: this.#text(past.moment),
          ...(upTo === undefined ? {} : { up_to: this.#text(upTo) }),
          children: [],
        };
      }
      case "values": {
        const never = plan.never === undefined ? {} : { never: this.#text(plan.never) };
        return { node: "Values", access: "values", ...never, children: [] };
      }
      case "function": {
        const call = this.#calls(plan.functions);
        return { node: "Function", access: "function", call, children: [] };
      }
      case "cte": {
        const isFirst = !this.#shown.has(plan.cte);
        this.#shown.add(plan.cte);
        const source = isFirst ? [this.#node(planOfCte(plan.cte))] : [];
        return { node: "CTE Scan", table: plan.cte.name, access: "scan", children: source };
      }
      case "gathered":
        return { node: "Gathered Rows", access: "values", children: [] };
      case "working":
        return { node: "Working Table", table: plan.recursion.name, access: "scan", children: [] };
      case "join":
      case "lateral":
      case "set":
      case "recursive":
        return this.#pair(plan);
      default:
        return this.#step(plan);
    }
  }

  #text(expression: BoundExpression): string {
    return textOfExpression(expression, this.#call.slots);
  }

  #texts(list: readonly BoundExpression[]): string {
    return list.map((each) => this.#text(each)).join(", ");
  }

  #calls(functions: readonly BoundTableFunction[]): string {
    return functions.map(({ args, name }) => `${name}(${this.#texts(args)})`).join(", ");
  }

  /**
   * Describes the sort keys of a node.
   *
   * @param input The node whose rows are sorted; needed only if some of its columns may have no
   *   name.
   */
  #sortText(keys: readonly BoundSort[], input?: PlanNode): string {
    return keys
      .map(({ expression, isDescending }) => {
        const shown = input === undefined ? expression : computedBelow(expression, input);
        return `${this.#text(shown)}${isDescending ? " DESC" : ""}`;
      })
      .join(", ");
  }

  /** Describes the calls of a window node, which all have the same PARTITION BY and ORDER BY. */
  #windowDetails(calls: readonly BoundWindowCall[]): Record<string, string> {
    const { orderBy = [], partitionBy = [] } = calls[0]?.window ?? {};
    return {
      call: calls.map(({ form }) => nameOfCall(form)).join(", "),
      ...(partitionBy.length > 0 ? { partition: this.#texts(partitionBy) } : {}),
      ...(orderBy.length > 0 ? { keys: this.#sortText(orderBy) } : {}),
    };
  }

  /** Describes a node with two inputs. */
  #pair(plan: Extract<PlanNode, { kind: "join" | "lateral" | "set" | "recursive" }>): ExplainNode {
    const inner = { children: inputsOf(plan).map((input) => this.#node(input)) };
    switch (plan.kind) {
      case "recursive":
        return { node: "Recursive Union", table: plan.recursion.name, ...inner };
      case "join": {
        const keys = plan.leftKeys.map((left, i) => {
          const right = plan.rightKeys[i];
          return right === undefined
            ? this.#text(left)
            : `${this.#text(left)} = ${this.#text(right)}`;
        });
        const keyed = runtimeFilterOf(plan);
        return {
          node: keys.length > 0 ? "Hash Join" : "Nested Loop",
          join: plan.join,
          ...(keys.length > 0 ? { keys: keys.join(" AND ") } : {}),
          ...(keyed === undefined ? {} : { may_look_up: textOfLookUp(keyed) }),
          ...(plan.residual === undefined ? {} : { filter: this.#text(plan.residual) }),
          ...inner,
        };
      }
      case "lateral":
        return {
          node: "Lateral Join",
          join: plan.join,
          ...(plan.condition === undefined ? {} : { filter: this.#text(plan.condition) }),
          ...inner,
        };
      case "set": {
        const all = plan.isAll ? " All" : "";
        return {
          node: `${plan.operator[0]?.toUpperCase()}${plan.operator.slice(1)}${all}`,
          ...inner,
        };
      }
    }
  }

  /** Describes a node with one input. */
  #step(plan: StepNode): ExplainNode {
    const inner = { children: [this.#node(plan.input)] };
    switch (plan.kind) {
      case "filter":
        return {
          node: "Filter",
          filter: this.#text(plan.condition),
          ...(isAskedOnce(plan.condition) ? { asked: "once" } : {}),
          ...inner,
        };
      case "project":
        return { node: "Project", ...inner };
      case "expand":
        return { node: "Expand", call: this.#calls(plan.functions), ...inner };
      case "aggregate": {
        const keys = this.#texts(plan.groupBy.map(({ expression }) => expression));
        const orders = (extremeKeysOf(plan) ?? []).flatMap(
          (key) => indexOrderOf(plan.input, [key])?.access.index.name ?? [],
        );
        return {
          node: "Aggregate",
          ...(keys === "" ? {} : { keys }),
          ...(orders.length === 0 ? {} : { may_read_in_order_of: orders.join(", ") }),
          ...inner,
        };
      }
      case "distinct":
        return {
          node: "Distinct",
          keys: this.#texts(plan.on.map((each) => computedBelow(each, plan.input))),
          ...inner,
        };
      case "sort": {
        const order = plan.limit === undefined ? undefined : indexOrderOf(plan.input, plan.keys);
        return {
          node: "Sort",
          keys: this.#sortText(plan.keys, plan.input),
          ...(order === undefined ? {} : { may_read_in_order_of: order.access.index.name }),
          ...inner,
        };
      }
      case "window":
        return { node: "Window", ...this.#windowDetails(plan.calls), ...inner };
      case "limit":
        return {
          node: "Limit",
          ...(plan.limit === undefined ? {} : { limit: this.#text(plan.limit) }),
          ...(plan.offset === undefined ? {} : { offset: this.#text(plan.offset) }),
          ...inner,
        };
    }
  }

  /**
   * Describes the number of keys that a scan looks up. The elements of an array can be counted
   * only at run time.
   */
  #listed(sought: SoughtKeys): string {
    const lists = sought.flat().flatMap((part) => part.lists);
    if (lists.length === 0) return `any of ${keyCountOf(sought)}`;
    return `any of the elements of ${this.#texts(lists)}`;
  }

  #scan(scan: ScanNode): ExplainNode {
    const { either, indexes = [], key, prefix, sought, table } = scan;
    const text = (expression: BoundExpression): string => this.#text(expression);
    const nameOf = (columnId: number): string =>
      columnId === SEQ_COLUMN_ID
        ? "_seq"
        : nameText(
            table.columns.find((column) => column.columnId === columnId)?.name ?? `#${columnId}`,
          );
    const keys =
      key?.map((value, i) => `${nameOf(table.primaryKey[i] ?? 0)} = ${text(value)}`) ??
      (sought === undefined ? undefined : [this.#listed(sought)]);
    const listed =
      prefix === undefined || keys !== undefined
        ? undefined
        : `${nameOf(table.primaryKey[0] ?? 0)} ${this.#listed(prefix.map((part) => [part]))}`;
    const ranges = rangesShown(scan);
    const bounds = ranges.flatMap(({ beginning, columnId, like, max, min }) => {
      if (like !== undefined) return [`${nameOf(columnId)} LIKE ${text(like)}`];
      if (beginning !== undefined) return [`starts_with(${nameOf(columnId)}, ${text(beginning)})`];
      if (min !== undefined && min === max) return [`${nameOf(columnId)} = ${text(min)}`];
      const low = min === undefined ? [] : [`${nameOf(columnId)} >= ${text(min)}`];
      return max === undefined ? low : [...low, `${nameOf(columnId)} <= ${text(max)}`];
    });
    const bounded = new Set(ranges.map(({ columnId }) => columnId));
    const access: ShownAccess =
      keys !== undefined
        ? "key"
        : indexes.length > 0 || either !== undefined
          ? "index"
          : listed !== undefined || bounded.has(table.primaryKey[0] ?? 0)
            ? "key_range"
            : bounded.has(SEQ_COLUMN_ID)
              ? "seq_range"
              : "scan";
    return {
      node: NODES[access] ?? "Table Scan",
      table: `${table.namespace}.${table.name}`,
      access,
      ...(keys === undefined ? {} : { key: keys.join(" AND ") }),
      ...(access === "index"
        ? { index: textOfIndexes(table, { indexes, either }, { textOf: text }) }
        : {}),
      ...(listed === undefined ? {} : { prefix: listed }),
      ...(bounds.length === 0 ? {} : { ranges: bounds.join(" AND ") }),
      ...this.#versionsRead(scan),
      children: [],
    };
  }

  /**
   * Describes the row versions that a scan reads: their owner, their time, and whether deleted
   * rows are included.
   */
  #versionsRead({ past, table, withTombstones }: ScanNode): Partial<ExplainNode> {
    return {
      ...(table.kind === "shared" ? {} : { owner: this.#call.principal.userId }),
      ...(withTombstones ? { tombstones: true } : {}),
      ...(past === undefined ? {} : { as_of: this.#text(past.moment) }),
    };
  }
}

/**
 * Returns the ranges to show for a scan. Bounds on strings are shown only on the first key column,
 * because a scan uses them only to find rows through the sort order of that column.
 */
function rangesShown({ ranges, table, textRanges = [] }: ScanNode): readonly PlannedRange[] {
  return ranges.concat(textRanges.filter(({ columnId }) => columnId === table.primaryKey[0]));
}

function textOfLookUp({ by, scan: { table } }: RuntimeFilter): string {
  const name = `${table.namespace}.${table.name}`;
  return typeof by === "object" ? `${name} by index ${by.name}` : name;
}

/** The names of scans with an access path other than reading the table itself. */
const NODES: Partial<Record<ShownAccess, string>> = { key: "Key Lookup", index: "Index Scan" };

/**
 * Returns the expression with which a lower node computes a column. It is shown in place of a
 * column that exists only in the plan and has no name.
 */
function computedBelow(key: BoundExpression, input: PlanNode): BoundExpression {
  if (key.kind !== "column" || key.column.name !== "") return key;
  switch (input.kind) {
    case "project": {
      const position = input.columns.findIndex(({ id }) => id === key.column.id);
      return input.expressions[position] ?? key;
    }
    case "distinct":
    case "limit":
    case "sort":
      return computedBelow(key, input.input);
    default:
      return key;
  }
}

function measuredFields(plan: PlanNode, measured: Measured | undefined): Record<string, number> {
  const {
    bytes = 0,
    groupsPruned = 0,
    groupsRead = 0,
    loops = 0,
    ms = 0,
    partialRows = 0,
    rows = 0,
    spilledBytes = 0,
  } = measured ?? {};
  const spilled = spilledBytes === 0 ? {} : { spilled_bytes: spilledBytes };
  const partial = partialRows === 0 ? {} : { partial_rows: partialRows };
  const fields = { rows, ...partial, loops, ms, bytes, ...spilled };
  if (plan.kind !== "scan" || isByKey(plan)) return fields;
  return { ...fields, segments_read: groupsRead, segments_pruned: groupsPruned };
}

/** Returns the JSON fields that say in which threads a measured statement ran. */
function placeFields(profile: Profile | undefined): object {
  if (profile === undefined) return {};
  const { readerMs, waitedMs } = profile;
  const waited = waitedMs === 0 ? {} : { waited_ms: waitedMs };
  return { readers: readerMs.map((ms) => ({ ms })), ...waited };
}

/** Returns the lines of text that say in which threads a measured statement ran. */
function placeLines(profile: Profile | undefined): string[] {
  if (profile === undefined) return [];
  const { readerMs, waitedMs } = profile;
  const details = [
    ...(readerMs.length === 0 ? [] : [`ms: ${readerMs.map(millisecondsText).join(", ")}`]),
    ...(waitedMs === 0 ? [] : [`waited ms: ${millisecondsText(waitedMs)}`]),
  ];
  const shown = details.length === 0 ? "" : `  (${details.join("; ")})`;
  return [`Readers: ${readerMs.length}${shown}`];
}

/** The runtime has JSON.rawJSON, but TypeScript's type declarations do not include it yet. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => object };

/** Prints durations with three decimal places, as all responses do. */
function withDecimals(name: string, value: unknown): unknown {
  const isMs = name === "ms" || name === "waited_ms";
  return isMs && typeof value === "number" ? rawJSON(millisecondsText(value)) : value;
}

function textOfDetail(name: string, value: unknown): string {
  if (name === "ms" && typeof value === "number") return millisecondsText(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}

/** Returns one line of text per plan node. Each node is indented below the node that reads it. */
function linesOf(tree: ExplainNode): readonly string[] {
  const lines: string[] = [];
  addLines(tree, 0, lines);
  return lines;
}

function addLines(tree: ExplainNode, depth: number, lines: string[]): void {
  const { children, node, table, ...details } = tree;
  const place = table === undefined ? "" : ` on ${table}`;
  const shown = Object.entries(details).map(
    ([name, value]) => `${name.replaceAll("_", " ")}: ${textOfDetail(name, value)}`,
  );
  const inBrackets = shown.length === 0 ? "" : `  (${shown.join("; ")})`;
  lines.push(`${"  ".repeat(depth)}${node}${place}${inBrackets}`);
  for (const child of children) addLines(child, depth + 1, lines);
}

function nameOfCall(form: BoundWindowCall["form"]): string {
  return form.kind === "function" ? form.name : form.aggregate.name;
}
