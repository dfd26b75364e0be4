/**
 * Keeps the groups of all materialised queries. The class finds the group for a query, and the
 * groups affected by a commit or a changed definition.
 */
import type { Seq } from "../../base/seq.ts";
import type { JoinChangeSource, ResultPlan, ResultTable } from "../../sql/mod.ts";
import type { ChangedPartition } from "../../storage/mod.ts";
import type { Start } from "../subscription/subscribe_options.ts";
import { type Evaluated, Evaluations } from "./evaluations.ts";
import { ResultFeed } from "./result_feed.ts";
import { isSameResult, ResultGroup, type ResultHost, type ResultMember } from "./result_group.ts";
import { ResultReader } from "./result_reader.ts";
import type { ResultState } from "./result_state.ts";
import { ResultSubscription, type ResultSubscriptionOptions } from "./result_subscription.ts";
import { ResumeReader } from "./resume_reader.ts";
import { StateBudget } from "./state_budget.ts";

export interface FollowedResultsOptions
  extends Omit<ResultHost, "budget" | "evaluations" | "feedOf" | "forget" | "unwatch" | "watch"> {
  /** The maximum memory for the rows of all results, in bytes. */
  readonly stateBytesMax: number;
}

/** An object that is notified of commits to the tables that it reads. */
interface TableReader {
  reads(tableId: number, owner: number): boolean;
  noteChange(): void;
}

export interface ResultStart {
  readonly start: Start;
  readonly batchSize: number;
  /** The newest visible seq when the subscription begins. */
  readonly boundary: Seq;
}

export interface NewResultSubscription extends Omit<ResultSubscriptionOptions, "group"> {
  readonly plan: ResultPlan;
}

export class FollowedResults {
  readonly #host: ResultHost;
  /** The groups that new subscribers can join, keyed by the fingerprint of their plan. */
  readonly #groups = new Map<string, ResultGroup>();
  /**
   * The groups that still have subscribers but have been replaced in `#groups` by newer groups.
   */
  readonly #replaced = new Set<ResultGroup>();
  /** The feeds, and the groups without a feed, keyed by the id of each table that they read. */
  readonly #byTable = new Map<number, Set<TableReader>>();
  readonly #feeds = new Map<JoinChangeSource, ResultFeed>();
  readonly #feedTurns: Evaluations<Evaluated>;

  constructor({ stateBytesMax, ...options }: FollowedResultsOptions) {
    this.#feedTurns = new Evaluations<Evaluated>(options.clock);
    this.#host = {
      ...options,
      budget: new StateBudget(stateBytesMax),
      evaluations: new Evaluations<ResultGroup>(options.clock),
      forget: (group) => this.#forgetGroup(group),
      watch: (group) => this.#watch(group, group.plan.tables),
      unwatch: (group) => this.#unwatch(group, group.plan.tables),
      feedOf: (source, plan) => this.#feedOf(source, plan),
    };
  }

  /** Yields all subscriptions, group by group, because no list of all subscriptions exists. */
  *subscriptions(): Generator<ResultMember> {
    for (const group of this.#all()) yield* group.members;
  }

  /** Returns the existing group for a query; undefined if there is none. */
  groupOf({ fingerprint }: Pick<ResultPlan, "fingerprint">): ResultGroup | undefined {
    return this.#groups.get(fingerprint);
  }

  /** Creates a subscription. {@linkcode begin} then starts it. */
  open({ plan, ...options }: NewResultSubscription): ResultSubscription {
    const group = this.#joinable(plan) ?? this.#newGroup(plan);
    return new ResultSubscription({ ...options, group });
  }

  /**
   * Returns the group that a new subscriber joins. A group that awaits its review may end because
   * of a definition that the subscriber's plan already takes into account, so the subscriber gets
   * a new group instead.
   */
  #joinable(plan: ResultPlan): ResultGroup | undefined {
    const group = this.groupOf(plan);
    if (group === undefined || group.isSuspended) return undefined;
    return isSameResult(group.plan, plan) ? group : undefined;
  }

  begin(subscription: ResultSubscription, { batchSize, boundary, start }: ResultStart): void {
    const { frameBytesMax } = this.#host;
    const { group } = subscription;
    const reading = {
      group,
      boundary,
      batchSize,
      frameBytesMax,
      onState: (state: ResultState) => subscription.noteLoaded(state),
    };
    switch (start.kind) {
      case "live":
        return subscription.start(undefined);
      case "snapshot":
        return subscription.start(new ResultReader(reading));
      case "resume": {
        const { position } = start;
        const onArrived = (): void => subscription.arrived();
        const resuming = { ...reading, host: this.#host, position, onArrived };
        return subscription.start(new ResumeReader(resuming), position);
      }
    }
  }

  /** Marks the groups whose tables were changed by commits that have become visible. */
  noteChanges(changed: readonly ChangedPartition[]): void {
    for (const { owner, tableId } of changed) {
      for (const reader of this.#byTable.get(tableId) ?? []) {
        if (reader.reads(tableId, owner)) reader.noteChange();
      }
    }
  }

  /**
   * Reviews the queries that read a table, or all queries if `tableId` is undefined because a view
   * has changed.
   */
  review(tableId: number | undefined): void {
    for (const group of this.#all()) {
      const { tables } = group.plan;
      if (tableId === undefined || tables.some((table) => table.tableId === tableId))
        group.review();
    }
  }

  *#all(): Generator<ResultGroup> {
    yield* this.#groups.values();
    yield* this.#replaced;
  }

  #newGroup(plan: ResultPlan): ResultGroup {
    const group = new ResultGroup(this.#host, plan);
    const replaced = this.groupOf(plan);
    if (replaced !== undefined) this.#replaced.add(replaced);
    this.#groups.set(plan.fingerprint, group);
    this.#watch(group, plan.tables);
    return group;
  }

  #forgetGroup(group: ResultGroup): void {
    const { fingerprint, tables } = group.plan;
    this.#replaced.delete(group);
    if (this.#groups.get(fingerprint) === group) this.#groups.delete(fingerprint);
    this.#unwatch(group, tables);
  }

  #feedOf(source: JoinChangeSource, { rowSeq, tables }: ResultPlan): ResultFeed {
    const known = this.#feeds.get(source);
    if (known !== undefined) return known;
    const feed = new ResultFeed({
      source,
      hasChangeSeqs: rowSeq === "last change",
      tables,
      store: this.#host.store,
      budget: this.#host.budget,
      clock: this.#host.clock,
      evaluations: this.#feedTurns,
      onEmpty: () => {
        this.#feeds.delete(source);
        this.#unwatch(feed, tables);
      },
    });
    this.#feeds.set(source, feed);
    this.#watch(feed, tables);
    return feed;
  }

  #watch(reader: TableReader, tables: readonly ResultTable[]): void {
    for (const { tableId } of tables) {
      const known = this.#byTable.get(tableId) ?? new Set();
      this.#byTable.set(tableId, known.add(reader));
    }
  }

  #unwatch(reader: TableReader, tables: readonly ResultTable[]): void {
    for (const { tableId } of tables) {
      const known = this.#byTable.get(tableId);
      known?.delete(reader);
      if (known?.size === 0) this.#byTable.delete(tableId);
    }
  }
}
