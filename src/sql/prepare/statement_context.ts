/** Creates the context for one execution of a statement from the dependencies of the SQL layer. */
import { mayRead, mayReadHistory, type Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { ReadStore, WriteStore } from "../../storage/mod.ts";
import type { Value } from "../../types/mod.ts";
import type { BoundRecursion, PastRead } from "../bind/bound.ts";
import { Effort } from "../execute/context/effort.ts";
import {
  type CopyInput,
  checkResultRows,
  type ExecutionContext,
  type QueryShare,
  type References,
  type SubqueryAnswers,
  type UploadSink,
} from "../execute/context/execution_context.ts";
import type { Profile } from "../execute/context/profile.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { Sleeps } from "../execute/context/sleeps.ts";
import { StatementParts } from "../execute/context/statement_parts.ts";
import type { StorageMeter } from "../execute/context/storage_meter.ts";
import { SLICE_OVER } from "../execute/context/time_slice.ts";
import type { StagedRows, Transaction } from "../execute/context/transaction.ts";
import type { TriggerCalls } from "../execute/context/trigger_calls.ts";
import type { MaterialisedRows } from "../execute/materialised/materialised_rows.ts";
import { MemoryBudget } from "../execute/materialised/memory_budget.ts";
import { Subqueries } from "../execute/subquery/subqueries.ts";
import type {
  AdvisoryCalls,
  CallDeps,
  ObjectCalls,
  ProgramCalls,
  SequenceCalls,
  SettingCalls,
} from "../functions/base/function.ts";
import { referencesTo } from "../names/references.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { TemporaryFiles } from "../spill/mod.ts";
import type { AttemptNumbers } from "./attempt_numbers.ts";
import { OwnObjectCalls } from "./object_calls.ts";
import { PastSeqs, type PastStore } from "./past_seqs.ts";
import { OwnSequenceCalls } from "./sequence_calls.ts";

/** The parts of the SQL environment that the execution of a statement needs. */
export type ExecutionDeps = Pick<
  SqlEnvironment,
  "catalog" | "clock" | "limits" | "random" | "spillSpace" | "storageQuota" | "store" | "version"
>;

/**
 * The dependencies of an execution in a reader thread, which has no catalog and does not write.
 */
export interface QueryDeps extends Omit<ExecutionDeps, "catalog" | "store"> {
  readonly catalog: Pick<Catalog, "namespace" | "tableById">;
  readonly store: ReadStore;
  /** Takes numbers from sequences for a statement that does not run on the event loop. */
  readonly sequences: SequenceCalls;
  readonly objects: ObjectCalls;
  readonly settings: SettingCalls;
}

export interface ContextOptions {
  readonly principal: Principal;
  readonly namespace: string;
  /** The values of the parameters, followed by the values of lifted literals or files. */
  readonly slots: readonly Value[];
  /** The seq at which the statement reads if it is not in a transaction. */
  readonly atSeq: Seq;
  /**
   * The seqs at which the statement reads earlier states of tables, in the order of the indexes of
   * these reads. Present only in a reader thread.
   */
  readonly pastSeqs?: readonly Seq[] | undefined;
  readonly transaction?: Transaction | undefined;
  /** The rows that the transaction has staged; present only in a reader thread. */
  readonly staged?: StagedRows | undefined;
  /** The store to which changes are written. */
  readonly writes?: WriteStore | undefined;
  /**
   * The time of the statement. If it is absent, the current time or the time of the transaction
   * applies.
   */
  readonly nowMicros?: number | undefined;
  /** Returns the settings of the request; absent for expressions that belong to no request. */
  readonly settings?: (() => SettingCalls) | undefined;
  readonly uploads?: UploadSink | undefined;
  readonly copyInput?: CopyInput | undefined;
  readonly division?: QueryShare | undefined;
  /** Whether the statement has a WITH clause that changes rows. */
  readonly isOfParts?: boolean;
  /** Collects the measurements of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /**
   * The ledger of the request; absent for expressions of definitions and live queries, which
   * belong to no request.
   */
  readonly ledger?: RequestLedger | undefined;
  /**
   * The monotonic time from which {@linkcode ExecutionContext.checkTime} throws SLICE_OVER; absent
   * if the statement runs to completion without interruption.
   */
  readonly sliceEndMs?: number | undefined;
  /** Implements pg_sleep for the statement; absent if the statement may not sleep. */
  readonly sleeps?: Sleeps | undefined;
  /** Runs the programs that expressions call; absent for expressions that belong to no request. */
  readonly programs?: AttemptPrograms | undefined;
  /** Takes advisory locks; absent if the statement cannot call the functions that take them. */
  readonly advisory?: AttemptLocks | undefined;
  /** Calls trigger functions; absent if the statement changes no rows. */
  readonly triggers?: (() => TriggerCalls) | undefined;
  /**
   * The transition tables: the rows that the statements of a trigger read by the names in
   * REFERENCING.
   */
  readonly transition?: ReadonlyMap<BoundRecursion, MaterialisedRows> | undefined;
  /** The nesting depth of triggers at which the statement runs. */
  readonly triggerDepth?: number | undefined;
  /** Records the numbers that this attempt takes from sequences. */
  readonly attempt?: AttemptNumbers | undefined;
}

/** Takes advisory locks for a statement that may be restarted. */
export interface AttemptLocks extends AdvisoryCalls {
  /** Must be called before the statement is restarted. */
  beginAnew(): void;
}

/** Runs programs for one attempt of a statement. */
export interface AttemptPrograms extends ProgramCalls {
  /** Must be called before the statement is restarted. */
  beginAnew?(): void;
}

/** An anonymous principal, for expressions of definitions that read no rows. */
export const NO_PRINCIPAL: Principal = {
  userId: "",
  role: "user",
  owner: undefined,
  actorId: "",
  actorRole: "user",
  isImpersonated: false,
  sessionId: "",
};

/** The execution context of a whole statement. It also records the progress of the statement. */
export interface StatementContext extends ExecutionContext {
  /** Whether the statement reads rows in a sort order that only the event loop maintains. */
  readonly readsInOrder: boolean;
  /** Implements pg_sleep; undefined if the query cannot call it. */
  readonly sleeps: Sleeps | undefined;
  /**
   * Discards all rows read so far, so that the statement can be restarted.
   *
   * @param sliceEndMs See {@linkcode ContextOptions}.
   */
  beginAnew(sliceEndMs: number | undefined): void;
}

export function newContext(deps: ExecutionDeps, options: ContextOptions): StatementContext {
  const { catalog, store } = deps;
  const { attempt, ledger, namespace, principal, transaction } = options;
  attempt?.begin(catalog);
  const calls: ContextCalls = {
    sequences: () => {
      const taken = [ledger?.numbers ?? [], transaction?.numbers ?? []].flat();
      const isReadOnly = transaction?.isReadOnly === true;
      return new OwnSequenceCalls({ catalog, namespace, principal, taken, isReadOnly, attempt });
    },
    objects: () => new OwnObjectCalls({ catalog, namespace, principal }),
    settings: options.settings ?? noSettings,
    beginAnew: () => {
      attempt?.begin(catalog);
      options.advisory?.beginAnew();
      options.programs?.beginAnew?.();
    },
  };
  return new OwnContext(deps, options, calls, {
    references: referencesIn(deps, principal),
    history: store,
  });
}

function referencesIn(
  { catalog, store }: Pick<ExecutionDeps, "catalog" | "store">,
  principal: Principal,
): References {
  return {
    get appliedSeq() {
      return store.appliedSeq;
    },
    tableById: (tableId) => catalog.tableById(tableId),
    mayName: (table) => mayRead(principal, table, catalog.namespace(table.namespace)),
    to: (tableId) => referencesTo(catalog, tableId),
    owners: (tableId) => store.owners(tableId),
  };
}

/** Creates the context for an execution in a reader thread. */
export function newReaderContext(deps: QueryDeps, options: ContextOptions): StatementContext {
  const { objects, sequences, settings } = deps;
  return new OwnContext(deps, options, {
    sequences: () => sequences,
    objects: () => objects,
    settings: () => settings,
  });
}

const NOTHING: ReadonlyMap<never, never> = new Map<never, never>();

/** The objects that implement functions such as nextval and current_setting, created on demand. */
interface ContextCalls {
  sequences(): SequenceCalls;
  objects(): ObjectCalls;
  settings(): SettingCalls;
  /**
   * Must be called before the statement is restarted. Returns the numbers that this attempt has
   * taken to their sequences.
   */
  beginAnew?(): void;
}

/**
 * The context of an execution. Its memory budget and the objects that implement function calls are
 * created on demand, because a lookup by key needs neither.
 */
class OwnContext implements StatementContext {
  readonly store: ReadStore;
  readonly writes: WriteStore | undefined;
  readonly principal: Principal;
  readonly transaction: Transaction | undefined;
  readonly staged: StagedRows | undefined;
  readonly snapshotSeq: Seq;
  readonly slots: readonly Value[];
  readonly storageMeter: StorageMeter | undefined;
  readonly references: References | undefined;
  readonly uploads: UploadSink | undefined;
  readonly copyInput: CopyInput | undefined;
  readonly division: QueryShare | undefined;
  readonly profile: Profile | undefined;
  readonly #deps: Omit<QueryDeps, "objects" | "sequences" | "settings">;
  readonly #calls: ContextCalls;
  readonly #namespace: string;
  readonly #ledger: RequestLedger | undefined;
  readonly #nowMicros: number;
  readonly outer: ExecutionContext["outer"] = NOTHING;
  readonly working: ExecutionContext["working"];
  readonly parts: StatementParts | undefined;
  readonly #newTriggers: ContextOptions["triggers"];
  #triggers: TriggerCalls | undefined;
  readonly #triggerDepth: number;
  readsInOrder = false;
  #sliceEndMs: number;
  #memory: MemoryBudget | undefined;
  #subqueries: SubqueryAnswers | undefined;
  readonly sleeps: Sleeps | undefined;
  readonly #advisory: AdvisoryCalls;
  readonly #programs: ProgramCalls;
  #effort: Effort | undefined;
  #pause: (() => Promise<void>) | undefined;
  #call: CallDeps | undefined;
  readonly #history: PastStore | undefined;
  readonly #givenPastSeqs: readonly Seq[];
  #pastSeqs: PastSeqs | undefined;
  #temporary: TemporaryFiles | undefined;

  constructor(
    deps: Omit<QueryDeps, "objects" | "sequences" | "settings">,
    options: ContextOptions,
    calls: ContextCalls,
    { history, references }: { history?: PastStore; references?: References } = {},
  ) {
    this.references = references;
    this.#history = history;
    this.#givenPastSeqs = options.pastSeqs ?? [];
    const { principal, transaction } = options;
    this.store = deps.store;
    this.writes = options.writes;
    this.principal = principal;
    this.transaction = transaction;
    this.staged = transaction ?? options.staged;
    this.snapshotSeq = transaction?.snapshotSeq ?? options.atSeq;
    this.slots = options.slots;
    this.storageMeter = deps.storageQuota;
    this.uploads = options.uploads;
    this.copyInput = options.copyInput;
    this.division = options.division;
    this.parts = options.isOfParts === true ? new StatementParts() : undefined;
    for (const [table, rows] of options.transition ?? []) this.parts?.rows.set(table, rows);
    this.working = this.parts?.rows ?? options.transition ?? NOTHING;
    this.#newTriggers = options.triggers;
    this.#triggerDepth = options.triggerDepth ?? 0;
    this.profile = options.profile;
    this.#deps = deps;
    this.#calls = calls;
    this.#namespace = options.namespace;
    this.#ledger = options.ledger;
    this.#sliceEndMs = options.sliceEndMs ?? Number.POSITIVE_INFINITY;
    this.sleeps = options.sleeps;
    this.#advisory = options.advisory ?? NO_ADVISORY_LOCKS;
    this.#programs = options.programs ?? NO_PROGRAMS;
    this.#nowMicros = transaction?.nowMicros ?? options.nowMicros ?? deps.clock.nowMs() * 1000;
  }

  get memory(): MemoryBudget {
    if (this.#memory === undefined) {
      this.#memory = new MemoryBudget(this.#deps.limits.queryMemoryBytes);
      if (this.#ledger !== undefined) this.#ledger.memory = this.#memory;
    }
    return this.#memory;
  }

  get triggers(): TriggerCalls | undefined {
    this.#triggers ??= this.#newTriggers?.();
    return this.#triggers;
  }

  get temporary(): TemporaryFiles {
    if (this.#temporary === undefined) {
      this.#temporary = new TemporaryFiles(this.#deps.spillSpace);
      if (this.#ledger !== undefined) {
        this.#ledger.temporary?.close();
        this.#ledger.temporary = this.#temporary;
      }
    }
    return this.#temporary;
  }

  get call(): CallDeps {
    this.#call ??= this.#callDeps();
    return this.#call;
  }

  get subqueries(): SubqueryAnswers {
    this.#subqueries ??= new Subqueries(this);
    return this.#subqueries;
  }

  get effort(): Effort {
    this.#effort ??= new Effort({ context: this, bytesMax: this.#deps.limits.queryMemoryBytes });
    return this.#effort;
  }

  pastSeq(past: PastRead): Seq {
    if (this.#history === undefined) {
      return defined(
        this.#givenPastSeqs[past.index],
        "reader thread: seq of a past read was not passed",
      );
    }
    this.#pastSeqs ??= new PastSeqs(this.#history, this);
    return this.#pastSeqs.seqOf(past);
  }

  mayReadHistory(table: TableEntry): boolean {
    const namespace = this.#deps.catalog.namespace(table.namespace);
    return mayReadHistory(this.principal, table, namespace);
  }

  requireUnaltered({ name, namespace, schemaVersion, tableId }: TableEntry): void {
    const { catalog } = this.#deps;
    if (catalog.tableById(tableId)?.schemaVersion === schemaVersion) return;
    throw new DatabaseError(
      "SERIALIZATION_FAILURE",
      `Cannot continue writing ${namespace}.${name}: it was altered or dropped in the meantime`,
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
    return this.#deps.clock.monotonicMs();
  }

  checkTime(): void {
    if (this.#ledger === undefined) return;
    this.#ledger.noteProgress?.();
    if (checkDeadline(this.#ledger, this.#deps.clock) >= this.#sliceEndMs) throw SLICE_OVER;
  }

  get mayLeave(): boolean {
    return this.#sliceEndMs < Number.POSITIVE_INFINITY;
  }

  stay(): void {
    this.#sliceEndMs = Number.POSITIVE_INFINITY;
  }

  beginAnew(sliceEndMs = Number.POSITIVE_INFINITY): void {
    this.#sliceEndMs = sliceEndMs;
    this.#calls.beginAnew?.();
    this.#subqueries = undefined;
    this.#memory?.close();
    this.#temporary?.close();
    this.#temporary = undefined;
    this.profile?.clear();
  }

  pause(): Promise<void> {
    // The work before the first pause is counted as an entire time slice.
    this.#pause ??= pauser(this.#deps.clock, { check: () => this.checkTime(), firstSliceMs: 0 });
    return this.#pause();
  }

  checkResultRows(rowCount: number): void {
    checkResultRows(rowCount, this.#deps.limits.resultRowsMax);
  }

  #callDeps(): CallDeps {
    const { clock, random, store, version } = this.#deps;
    const { principal } = this;
    return {
      nowMicros: this.#nowMicros,
      userId: principal.userId,
      sessionUserId: principal.actorId,
      role: principal.role,
      claims: principal.claims,
      fileUrlKey: principal.fileUrlKey,
      namespace: this.#namespace,
      triggerDepth: this.#triggerDepth,
      version,
      clockMicros: () => clock.nowMs() * 1000,
      snowflakeId: () => store.snowflakeId(),
      sequences: this.#calls.sequences(),
      objects: this.#calls.objects(),
      settings: this.#calls.settings(),
      advisory: this.#advisory,
      programs: this.#programs,
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

/**
 * Takes the place of the settings in expressions that belong to no request. Every access throws.
 */
const NO_SETTINGS: SettingCalls = {
  current: () => {
    throw noRequest("CURRENT_SETTING");
  },
  set: () => {
    throw noRequest("SET_CONFIG");
  },
};

/** Takes the place of advisory locks in statements that cannot take any. Every call throws. */
const NO_ADVISORY_LOCKS: AdvisoryCalls = {
  lock: refuseLock,
  tryLock: refuseLock,
  unlock: refuseLock,
  unlockAll: refuseLock,
};

function refuseLock(): never {
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot use advisory locks here: their functions can be called only in queries and changes " +
      "to rows, but not in views or live queries",
    { hint: "call the function in the select list of a query" },
  );
}

/** Takes the place of programs in expressions that belong to no request. Every call throws. */
const NO_PROGRAMS: ProgramCalls = {
  call: ({ entry: { name, namespace } }) => {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot call function ${namespace}.${name} here: only functions whose body is a single ` +
        "SQL query can be called here",
      { hint: "rewrite the function as a single query with LANGUAGE sql" },
    );
  },
};

function noSettings(): SettingCalls {
  return NO_SETTINGS;
}

function noRequest(name: string): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot call ${name} here: settings exist only within a request`,
    { hint: "pass the value as a parameter" },
  );
}

function noSleep(): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot call PG_SLEEP here: only queries can sleep",
    {
      hint: "call it in a query, or run SELECT PG_SLEEP(…) as a separate statement",
    },
  );
}
