/**
 * Makes the run of one execution from what the SQL layer was given.
 */
import { mayReadHistory, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { ReadStore, WriteStore } from "../../storage/mod.ts";
import type { Value } from "../../types/mod.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { MemoryBudget } from "../execute/held/memory_budget.ts";
import { Effort } from "../execute/run/effort.ts";
import type { Profile } from "../execute/run/profile.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";
import {
  checkResultRows,
  type Run,
  type RunDivision,
  type SubqueryAnswers,
  type UploadSink,
} from "../execute/run/run.ts";
import type { Sleeps } from "../execute/run/sleeps.ts";
import type { StorageMeter } from "../execute/run/storage_meter.ts";
import type { StagedRows, Transaction } from "../execute/run/transaction.ts";
import { TURN_OVER } from "../execute/run/turn.ts";
import { Subqueries } from "../execute/subquery/subqueries.ts";
import type { CallWorld } from "../functions/base/function.ts";
import { TemporaryFiles } from "../spill/mod.ts";

/** What runs ask of their surroundings. */
export type RunWorld = Pick<
  SqlEnvironment,
  "catalog" | "clock" | "limits" | "random" | "spillSpace" | "storageQuota" | "store" | "version"
>;

/** The same for a run in another thread, which has no catalog and writes nothing. */
export interface QueryWorld extends Omit<RunWorld, "catalog" | "store"> {
  readonly catalog: Pick<Catalog, "namespace" | "tableById">;
  readonly store: ReadStore;
}

export interface NewRun {
  readonly principal: Principal;
  readonly namespace: string;
  /** Parameters, then lifted literals or files. */
  readonly slots: readonly Value[];
  /** What a statement outside a transaction reads. */
  readonly atSeq: Seq;
  readonly transaction?: Transaction | undefined;
  /** The staged rows of a transaction that is in another thread. */
  readonly staged?: StagedRows | undefined;
  /** The store that takes the changes. */
  readonly writes?: WriteStore | undefined;
  /** The time of the statement; absent: now, or that of the transaction. */
  readonly nowMicros?: number | undefined;
  readonly uploads?: UploadSink | undefined;
  readonly division?: RunDivision | undefined;
  /** Of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /** Of the request; expressions of a definition or of a live query run for none. */
  readonly ledger?: RequestLedger | undefined;
  /**
   * The monotonic time from which on {@linkcode Run.checkTime} throws TURN_OVER; absent if the
   * statement runs to its end here.
   */
  readonly turnEndMs?: number | undefined;
  /** Absent if the statement may not sleep. */
  readonly sleeps?: Sleeps | undefined;
}

/** A caller that is nobody: for expressions of definitions, which read no row. */
export const NO_PRINCIPAL: Principal = {
  userId: "",
  role: "user",
  owner: undefined,
  actorId: "",
  actorRole: "user",
  isImpersonated: false,
  sessionId: "",
};

/** A run, and what was noted of it. */
export interface NotedRun extends Run {
  /** Whether it reads rows in an order that only the event loop keeps. */
  readonly readsInOrder: boolean;
  /** Present if the query may sleep. */
  readonly sleeps: Sleeps | undefined;
  /**
   * Forgets all that was read: the statement is begun anew.
   *
   * @param turnEndMs As in {@linkcode NewRun}.
   */
  beginAnew(turnEndMs: number | undefined): void;
}

export function newRun(world: QueryWorld, options: NewRun): NotedRun {
  return new StatementRun(world, options);
}

const NOTHING: ReadonlyMap<never, never> = new Map<never, never>();

/**
 * Makes the budget and what functions ask for when they are wanted: a read by key needs neither.
 */
class StatementRun implements NotedRun {
  readonly store: ReadStore;
  readonly writes: WriteStore | undefined;
  readonly principal: Principal;
  readonly transaction: Transaction | undefined;
  readonly staged: StagedRows | undefined;
  readonly snapshotSeq: Seq;
  readonly slots: readonly Value[];
  readonly storageMeter: StorageMeter | undefined;
  readonly uploads: UploadSink | undefined;
  readonly division: RunDivision | undefined;
  readonly profile: Profile | undefined;
  readonly #world: QueryWorld;
  readonly #namespace: string;
  readonly #ledger: RequestLedger | undefined;
  readonly #nowMicros: number;
  readonly outer: Run["outer"] = NOTHING;
  readonly working: Run["working"] = NOTHING;
  readsInOrder = false;
  #turnEndMs: number;
  #memory: MemoryBudget | undefined;
  #subqueries: SubqueryAnswers | undefined;
  readonly sleeps: Sleeps | undefined;
  #effort: Effort | undefined;
  #pause: (() => Promise<void>) | undefined;
  #call: CallWorld | undefined;
  #temporary: TemporaryFiles | undefined;

  constructor(world: QueryWorld, options: NewRun) {
    const { principal, transaction } = options;
    this.store = world.store;
    this.writes = options.writes;
    this.principal = principal;
    this.transaction = transaction;
    this.staged = transaction ?? options.staged;
    this.snapshotSeq = transaction?.snapshotSeq ?? options.atSeq;
    this.slots = options.slots;
    this.storageMeter = world.storageQuota;
    this.uploads = options.uploads;
    this.division = options.division;
    this.profile = options.profile;
    this.#world = world;
    this.#namespace = options.namespace;
    this.#ledger = options.ledger;
    this.#turnEndMs = options.turnEndMs ?? Number.POSITIVE_INFINITY;
    this.sleeps = options.sleeps;
    this.#nowMicros = transaction?.nowMicros ?? options.nowMicros ?? world.clock.nowMs() * 1000;
  }

  get memory(): MemoryBudget {
    if (this.#memory === undefined) {
      this.#memory = new MemoryBudget(this.#world.limits.queryMemoryBytes);
      if (this.#ledger !== undefined) this.#ledger.memory = this.#memory;
    }
    return this.#memory;
  }

  get temporary(): TemporaryFiles {
    if (this.#temporary === undefined) {
      this.#temporary = new TemporaryFiles(this.#world.spillSpace);
      if (this.#ledger !== undefined) {
        this.#ledger.temporary?.close();
        this.#ledger.temporary = this.#temporary;
      }
    }
    return this.#temporary;
  }

  get call(): CallWorld {
    this.#call ??= this.#callWorld();
    return this.#call;
  }

  get subqueries(): SubqueryAnswers {
    this.#subqueries ??= new Subqueries(this);
    return this.#subqueries;
  }

  get effort(): Effort {
    this.#effort ??= new Effort({ run: this, bytesMax: this.#world.limits.queryMemoryBytes });
    return this.#effort;
  }

  mayReadHistory(table: TableEntry): boolean {
    const namespace = this.#world.catalog.namespace(table.namespace);
    return mayReadHistory(this.principal, table, namespace);
  }

  requireUnaltered({ name, namespace, schemaVersion, tableId }: TableEntry): void {
    const { catalog } = this.#world;
    if (catalog.tableById(tableId)?.schemaVersion === schemaVersion) return;
    throw new DatabaseError(
      "SERIALIZATION_FAILURE",
      `Cannot go on writing ${namespace}.${name}: it was altered or dropped meanwhile`,
      { hint: "run the statement again" },
    );
  }

  noteReadInOrder(): void {
    this.readsInOrder = true;
  }

  noteRead(rowCount: number): void {
    if (this.#ledger !== undefined) this.#ledger.rowsRead += rowCount;
  }

  monotonicMs(): number {
    return this.#world.clock.monotonicMs();
  }

  checkTime(): void {
    if (this.#ledger === undefined) return;
    this.#ledger.noteProgress?.();
    if (checkDeadline(this.#ledger, this.#world.clock) >= this.#turnEndMs) throw TURN_OVER;
  }

  stay(): void {
    this.#turnEndMs = Number.POSITIVE_INFINITY;
  }

  beginAnew(turnEndMs = Number.POSITIVE_INFINITY): void {
    this.#turnEndMs = turnEndMs;
    this.#subqueries = undefined;
    this.#memory?.close();
    this.#temporary?.close();
    this.#temporary = undefined;
    this.profile?.clear();
  }

  pause(): Promise<void> {
    // The work before the first pause has had a turn.
    this.#pause ??= pauser(this.#world.clock, { check: () => this.checkTime(), firstTurnMs: 0 });
    return this.#pause();
  }

  checkResultRows(rowCount: number): void {
    checkResultRows(rowCount, this.#world.limits.resultRowsMax);
  }

  #callWorld(): CallWorld {
    const { clock, random, store, version } = this.#world;
    const { principal } = this;
    return {
      nowMicros: this.#nowMicros,
      userId: principal.userId,
      sessionUserId: principal.actorId,
      role: principal.role,
      namespace: this.#namespace,
      version,
      clockMicros: () => clock.nowMs() * 1000,
      snowflakeId: () => store.snowflakeId(),
      commitMs: (seq) => store.commitMs(seq),
      lastSeqUpTo: (unixMs) => store.lastSeqUpTo(unixMs),
      randomBytes: (count) => random.bytes(count),
      randomUnit: () => random.unit(),
      sleep: (seconds) => {
        if (this.sleeps === undefined) throw noSleep();
        this.sleeps.sleep(Math.max(0, seconds) * 1000);
      },
    };
  }
}

function noSleep(): DatabaseError {
  return new DatabaseError("UNSUPPORTED_FEATURE", "Cannot call PG_SLEEP here", {
    hint: "call it in a query, or run SELECT PG_SLEEP(…) by itself",
  });
}
