/**
 * Provides the calls through which a running statement reaches beyond its plan: to programs,
 * triggers and settings, sleeps, and advisory locks.
 *
 * A query that restarts after a sleep makes its calls again. The lock calls of its latest attempt
 * are kept with their answers, so that the restarted query receives the same answers.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { Sleeps } from "../execute/context/sleeps.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { TriggerCalls } from "../execute/context/trigger_calls.ts";
import type { SettingCalls } from "../functions/base/function.ts";
import type { Prepared, PreparedQuery } from "../prepare/prepared.ts";
import { type ProgramHost, ProgramsInQuery } from "../prepare/program_calls.ts";
import { RecordedCalls } from "../prepare/recorded_calls.ts";
import { newContext } from "../prepare/statement_context.ts";
import { callsLocks, callsPrograms, maySleep } from "./read_elsewhere.ts";
import type { RunnerOptions, RunOptions, StatementDeps } from "./run_options.ts";
import { OwnSettingCalls } from "./setting_calls.ts";
import { StatementLocks } from "./statement_locks.ts";
import { OwnTriggerCalls, type TriggerCallOptions } from "./trigger_calls.ts";

export interface StatementCallsOptions
  extends Pick<RunnerOptions, "ledger" | "settings">,
    Pick<TriggerCallOptions, "runner"> {
  /** Receives notices if the options of a run name no receiver. */
  readonly onNotice: (message: string) => void;
}

export class StatementCalls {
  readonly #deps: StatementDeps;
  readonly #options: StatementCallsOptions;
  /**
   * The transaction that the client opened, as opposed to a transaction that the server opens for
   * a single change.
   */
  transaction: Transaction | undefined;
  /** The advisory lock calls of the latest attempt. */
  #locks: StatementLocks | undefined;

  constructor(deps: StatementDeps, options: StatementCallsOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Returns the calls through which a change fires its triggers. */
  triggersOf({
    onNotice = this.#options.onNotice,
    principal,
    transaction,
    trigger,
  }: Pick<RunOptions, "onNotice" | "principal" | "transaction" | "trigger">): TriggerCalls {
    const { ledger, runner, settings } = this.#options;
    return new OwnTriggerCalls({
      deps: this.#deps,
      ledger,
      settings,
      principal,
      runner,
      onNotice,
      transaction: defined(
        transaction,
        "trigger execution: change with triggers has no transaction",
      ),
      depth: trigger?.depth ?? 0,
    });
  }

  /**
   * Returns the calls through which the expressions of a statement run programs.
   *
   * @param sleeps Lets the statement be interrupted; undefined if it cannot be restarted.
   */
  programsOf(
    prepared: Prepared,
    options: RunOptions,
    sleeps?: Sleeps,
  ): ProgramsInQuery | undefined {
    if (!callsPrograms(prepared)) return undefined;
    const { namespace, nowMicros, principal, transaction } = options;
    const deps = this.#deps;
    const atSeq = options.atSeq?.() ?? deps.store.visibleSeq;
    const bytesMax = deps.limits.queryMemoryBytes;
    const recorded = new RecordedCalls({ clock: deps.clock, sleeps, bytesMax });
    const host: ProgramHost = {
      place: { deps, principal, namespace },
      clock: deps.clock,
      notice: options.onNotice ?? this.#options.onNotice,
      context: (slots, programs, sliceEndMs) =>
        newContext(deps, {
          principal,
          namespace,
          slots,
          atSeq,
          nowMicros,
          transaction,
          ledger: this.#options.ledger,
          settings: () => this.settingsOf(principal),
          programs,
          sliceEndMs,
        }),
    };
    return new ProgramsInQuery(host, { recorded });
  }

  /** Returns the calls through which a statement reads and changes settings. */
  settingsOf(principal: Principal): SettingCalls {
    return new OwnSettingCalls(this.#options.settings, { deps: this.#deps, principal });
  }

  /** Returns the object through which a query sleeps and waits; undefined if it never does. */
  sleepsOf(prepared: PreparedQuery, transaction: Transaction | undefined): Sleeps | undefined {
    if (![maySleep, callsLocks, callsPrograms].some((waits) => waits(prepared))) return undefined;
    const { clock } = this.#deps;
    // A query may sleep past the end of its transaction. The transaction's next statement is then
    // refused.
    const msMax = (): number =>
      transaction === undefined
        ? Number.POSITIVE_INFINITY
        : Math.max(0, transaction.startedAtMs + transaction.timeoutMs - clock.monotonicMs()) + 1;
    return new Sleeps({ clock, ledger: this.#options.ledger, msMax });
  }

  /**
   * Returns the calls through which a statement takes advisory locks. The sleeps of an earlier
   * attempt include the answers that the attempt received.
   *
   * @param sleeps Lets the statement wait for a lock; undefined if it must not wait.
   */
  locksOf(
    prepared: Prepared,
    { principal }: RunOptions,
    sleeps?: Sleeps,
  ): StatementLocks | undefined {
    if (!callsLocks(prepared)) return undefined;
    if (sleeps !== undefined && this.#locks?.sleeps === sleeps) {
      this.#locks.beginAnew();
      return this.#locks;
    }
    const { activity, clock, store } = this.#deps;
    const { ledger, settings } = this.#options;
    this.#locks = new StatementLocks({
      locks: activity.advisory,
      clock,
      store,
      ledger,
      settings,
      principal,
      transaction: this.transaction,
      sleeps,
    });
    return this.#locks;
  }
}
