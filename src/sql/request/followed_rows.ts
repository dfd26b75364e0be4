/**
 * Evaluates materialised queries. An evaluation is an ordinary statement: it begins on the event
 * loop and, if it takes longer than a time slice, is restarted in another thread.
 */
import { assert } from "../../base/assert.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq } from "../../base/seq.ts";
import type { WireCell } from "../../protocol/mod.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { cancelRequest, newLedger, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { IndexedChanges } from "../maintain/join_changes.ts";
import type { FollowedPart } from "../maintain/maintained_result.ts";
import type { StepContexts } from "../maintain/query_at.ts";
import type {
  IndexInMemory,
  JoinChanges,
  ResultChanges,
  ResultEvaluation,
  ResultMaintainer,
  ResultPlan,
  ResultRows,
  ResultTable,
} from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { expiredIn } from "../prepare/expired_rows.ts";
import { maintainedPlanOf, type WholeQuery } from "../prepare/followed_query.ts";
import type { MaintainedPlan, StatementToRun } from "../prepare/maintained_plans.ts";
import { firstMsAfter } from "../prepare/next_change.ts";
import { type PastStore, requireHistory } from "../prepare/past_seqs.ts";
import { newContext } from "../prepare/statement_context.ts";
import { closeRequest } from "./request_end.ts";
import { RequestSettings } from "./request_settings.ts";
import type { StatementDeps } from "./run_options.ts";
import { StatementRunner } from "./statement_runner.ts";

export type FollowedRowsDeps = StatementDeps & Pick<SqlEnvironment, "activity" | "log">;

/**
 * A planned materialised query, with everything needed to evaluate it. It contains only data that
 * differ between subscribers.
 */
export class FollowedResult implements ResultPlan, WholeQuery {
  readonly #deps: FollowedRowsDeps;
  readonly text: WholeQuery["text"];
  readonly way: WholeQuery["way"];
  readonly params: WholeQuery["params"];
  readonly slots: WholeQuery["slots"];
  readonly principal: WholeQuery["principal"];
  readonly tables: WholeQuery["tables"];
  readonly nextChanges: WholeQuery["nextChanges"];
  readonly fingerprint: string;
  readonly claimsKey: WholeQuery["claimsKey"];

  constructor(deps: FollowedRowsDeps, query: WholeQuery) {
    this.#deps = deps;
    this.text = query.text;
    this.way = query.way;
    this.params = query.params;
    this.slots = query.slots;
    this.principal = query.principal;
    this.tables = query.tables;
    this.nextChanges = query.nextChanges;
    this.fingerprint = query.fingerprint;
    this.claimsKey = query.claimsKey;
  }

  get sql(): string {
    return this.text.sql;
  }

  get namespace(): string {
    return this.text.namespace;
  }

  get changesByTime(): boolean {
    return this.text.changesByTime;
  }

  get readsClock(): boolean {
    return this.nextChanges.length > 0;
  }

  get fields(): ResultPlan["fields"] {
    return this.text.fields;
  }

  get rowSeq(): ResultPlan["rowSeq"] {
    return this.text.rowSeq;
  }

  get keyFields(): ResultPlan["keyFields"] {
    return this.text.keyFields;
  }

  get sort(): ResultPlan["sort"] {
    return this.text.sort;
  }

  get viewsChangedSeq(): number {
    return this.text.viewsChangedSeq;
  }

  get viewOwners(): ResultPlan["viewOwners"] {
    return this.text.viewOwners;
  }

  get mayRead(): ResultPlan["mayRead"] {
    return this.text.mayRead;
  }

  expiredBetween(after: Seq, upTo: Seq): ReturnType<ResultPlan["expiredBetween"]> {
    const { expiring, fields } = this.text;
    return expiredIn(expiring, this.#deps, { fields, range: { after, upTo } });
  }

  evaluate(at?: Seq): ResultEvaluation {
    const isVisible = at === undefined || at <= this.#deps.store.visibleSeq;
    assert(isVisible, "live query: evaluation requested at a seq that is not yet visible");
    const { cancel, result } = evaluate(this.#deps, this, { at, statement: this.text });
    return { result: result.then(cellsOf), cancel };
  }

  maintainer(): ResultMaintainer | undefined {
    const plan = maintainedPlanOf(this);
    return typeof plan === "string" ? undefined : new Maintainer(this.#deps, this, plan);
  }
}

/** The rows of a statement, with cells in the form in which its plan returns them. */
interface StatementRows extends Omit<ResultRows, "rows"> {
  readonly rows: readonly (readonly unknown[])[];
}

function cellsOf({ rows, ...state }: StatementRows): ResultRows {
  return { ...state, rows: rows as readonly (readonly WireCell[])[] };
}

/** The number of rows to convert before other work may run. */
const ROWS_PER_PART = 1024;

/**
 * Runs the statement that computes the first rows of a maintained result, and converts these rows
 * to cells.
 */
class Maintainer implements ResultMaintainer {
  readonly #deps: FollowedRowsDeps;
  readonly #query: WholeQuery;
  readonly #shared: MaintainedPlan["shared"];
  readonly partition: string;
  readonly #result: FollowedPart;

  constructor(deps: FollowedRowsDeps, query: WholeQuery, { partition, shared }: MaintainedPlan) {
    this.#deps = deps;
    this.#query = query;
    this.#shared = shared;
    this.partition = partition;
    const newContexts = (): StepContexts => query.text.maintained.newContexts(query);
    this.#result = shared.query.newResult(partition, newContexts);
  }

  get source(): IndexedChanges {
    return this.#shared.query.changes;
  }

  get bytes(): number {
    return this.#result.bytes;
  }

  async prepare(admits: (index: IndexInMemory, bytes: number) => boolean): Promise<boolean> {
    const pause = pauser(this.#deps.clock);
    for (const index of this.source.kept) {
      const isBuilt = await index.build({ admits: (bytes) => admits(index, bytes), pause });
      if (!isBuilt) return false;
    }
    return true;
  }

  begin(): ResultEvaluation {
    const { cancel, result } = evaluate(this.#deps, this.#query, {
      at: undefined,
      statement: this.#shared.seed,
    });
    return {
      result: result.then(async ({ rows, ...state }) => {
        const pause = pauser(this.#deps.clock);
        const begun = await this.#result.begin(rows as readonly Row[], pause);
        return { ...state, rows: await this.#cellsInParts(begun) };
      }),
      cancel,
    };
  }

  computeAhead(joined: JoinChanges): Generator<undefined, void> | undefined {
    return this.#result.computeAhead(joined);
  }

  apply(joined: JoinChanges): ResultChanges | undefined {
    const changes = this.#result.apply(joined);
    if (changes === undefined) return undefined;
    return { removed: this.#cells(changes.removed), added: this.#cells(changes.added) };
  }

  async #cellsInParts(rows: readonly Row[]): Promise<readonly (readonly WireCell[])[]> {
    const pause = pauser(this.#deps.clock);
    const all: (readonly WireCell[])[] = [];
    for (let start = 0; start < rows.length; start += ROWS_PER_PART) {
      for (const cells of this.#cells(rows.slice(start, start + ROWS_PER_PART))) all.push(cells);
      await pause();
    }
    return all;
  }

  #cells(rows: readonly Row[]): readonly (readonly WireCell[])[] {
    const { cells } = this.#query.text.prepared;
    return rows.map((row) => cells.cellsOf(row) as readonly WireCell[]);
  }
}

interface Evaluating {
  /** The seq at which the evaluation reads; undefined for the newest visible seq. */
  readonly at: Seq | undefined;
  readonly statement: StatementToRun;
}

function evaluate(
  deps: FollowedRowsDeps,
  query: WholeQuery,
  { at, statement }: Evaluating,
): { readonly result: Promise<StatementRows>; readonly cancel: () => void } {
  const { activity, clock, limits } = deps;
  const ledger = newLedger(clock.monotonicMs(), {
    timeoutMs: undefined,
    timeoutMsDefault: limits.timeoutMs,
    timeoutMsMax: limits.timeoutMsMax,
  });
  const { principal, text } = query;
  const request = { sql: text.sql };
  const running = activity.running.begin({ userId: principal.userId, sql: text.sql, ledger });
  const result = (async (): Promise<StatementRows> => {
    try {
      return await rowsOf(deps, query, { ledger, at, statement });
    } finally {
      activity.running.end(running);
      closeRequest(deps, { principal, request, running, ledger });
    }
  })();
  return { result, cancel: () => cancelRequest(ledger, "kill") };
}

async function rowsOf(
  deps: FollowedRowsDeps,
  query: WholeQuery,
  {
    at,
    ledger,
    statement: { node, prepared },
  }: Pick<Evaluating, "at" | "statement"> & { ledger: RequestLedger },
): Promise<StatementRows> {
  const { principal, slots, tables } = query;
  const { namespace, types } = query.text;
  const { clock, store } = deps;
  const nowMs = clock.nowMs();
  const runner = new StatementRunner(deps, {
    ledger,
    isStreamed: false,
    settings: new RequestSettings(deps),
    channelFor: () => {
      throw new Error("live query: evaluation asked for a streamed result");
    },
  });
  let seq: Seq | undefined;
  const { rows } = await runner.run(prepared, {
    principal,
    namespace,
    transaction: undefined,
    parameters: slots,
    files: undefined,
    nowMicros: nowMs * 1000,
    source: () => ({ node, types }),
    // Each attempt reads the newest state. The result comes from the last attempt.
    atSeq: () => {
      seq = at === undefined ? store.visibleSeq : earlierSeq(store, tables, at);
      return seq;
    },
  });
  // A merge may have discarded history between two time slices of the evaluation.
  if (at !== undefined) earlierSeq(store, tables, at);
  assert(
    seq !== undefined && rows !== undefined,
    "live query: evaluation ended without a seq or rows",
  );
  const untilMs = await nextChangeMs(deps, query, { runner, seq, nowMs });
  return { seq, changedSeq: lastChange(store, tables, seq), rows, untilMs };
}

/**
 * Returns the seq of the last commit that changed any of the tables, or the seq of the state if no
 * commit changed them.
 */
function lastChange(
  store: Pick<FollowedRowsDeps["store"], "lastCommitUpTo">,
  tables: readonly ResultTable[],
  seq: Seq,
): Seq {
  const seqs = tables.map(({ owner, tableId }) => store.lastCommitUpTo(tableId, owner, seq));
  const newest = Math.max(0, ...seqs) as Seq;
  return newest === 0 ? seq : newest;
}

/** Returns the next time at which a result may change without a commit. */
async function nextChangeMs(
  deps: FollowedRowsDeps,
  { nextChanges, principal, slots, text: { namespace } }: WholeQuery,
  { nowMs, runner, seq }: { runner: StatementRunner; seq: Seq; nowMs: number },
): Promise<number | undefined> {
  const base = { principal, namespace, slots, atSeq: seq };
  const contextAt = (ms: number): ExecutionContext =>
    newContext(deps, { ...base, nowMicros: ms * 1000 });
  let nextMs: number | undefined;
  for (const { clock, isOver, node, prepared, types, valueOf } of nextChanges) {
    const clockAt = (ms: number): Value => clock(contextAt(ms));
    const { rows } = await runner.run(prepared, {
      principal,
      namespace,
      transaction: undefined,
      parameters: [clockAt(nowMs)],
      files: undefined,
      source: () => ({ node, types }),
      atSeq: () => seq,
    });
    const [text] = rows?.[0] ?? [];
    // If no value lies ahead of the clock, only a commit can change the comparison.
    if (typeof text !== "string") continue;
    const value = valueOf(text);
    const ms = firstMsAfter(nowMs, (atMs) => isOver(clockAt(atMs), value));
    nextMs = Math.min(nextMs ?? ms, ms);
  }
  return nextMs;
}

/**
 * Returns the seq of the last commit at or before `at`, which is the state to read.
 *
 * @throws {DatabaseError} HISTORY_TOO_OLD
 */
function earlierSeq(store: PastStore, tables: readonly ResultTable[], at: Seq): Seq {
  let seq = at;
  for (const { owner, tableId } of tables) {
    seq = Math.min(seq, store.wholeCommitsUpTo(tableId, owner, at)) as Seq;
  }
  for (const table of tables) requireHistory(store, { ...table, seq });
  return seq;
}
