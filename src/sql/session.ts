/**
 * The SQL engine: the short way for one cached statement, and the long way for everything else.
 */
import type { Principal } from "../auth/mod.ts";
import { DatabaseError } from "../base/errors.ts";
import { DEFAULT_NAMESPACE } from "../catalog/mod.ts";
import type { DataType } from "../types/mod.ts";
import { atStatement } from "./at_statement.ts";
import { StatementBinding } from "./bind/binding.ts";
import type { LivePlan, LiveRequest, SqlEngine, SqlRequest, SqlResponse } from "./engine.ts";
import type { SqlEnvironment } from "./environment.ts";
import { IdempotentRequests } from "./idempotency.ts";
import { planLiveQuery } from "./live_planner.ts";
import { isQueryNode } from "./node_kinds.ts";
import { deadlineOf, parseLimitsOf, requireNoGap, typedParameters } from "./parameters.ts";
import { parseNormalized, parseStatements } from "./parse/parser.ts";
import { statementToSql } from "./parse/print.ts";
import { type CacheKey, literalValues, PlanCache } from "./plan_cache.ts";
import { authorize, type Prepared, prepare } from "./prepared.ts";
import { dmlContextOf } from "./relation_source.ts";
import { RequestRunner } from "./request.ts";
import { StatementRunner } from "./statement_runner.ts";

/** Characters of a slow statement that the log keeps. */
const SLOW_SQL_LENGTH_MAX = 2000;

export class LocalSqlEngine implements SqlEngine {
  readonly #environment: SqlEnvironment;
  readonly #plans: PlanCache;
  readonly #idempotent: IdempotentRequests;

  constructor(environment: SqlEnvironment) {
    this.#environment = environment;
    this.#plans = new PlanCache(environment.catalog);
    this.#idempotent = new IdempotentRequests(environment);
  }

  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse> {
    const startMs = this.#environment.clock.monotonicMs();
    const timed = (response: SqlResponse): SqlResponse => {
      this.#noteTime(principal, request, startMs);
      return response;
    };
    const { idempotency } = request;
    if (idempotency !== undefined && request.check !== true) {
      return this.#idempotent
        .execute(principal, idempotency, (recorder) => {
          const environment = this.#environment;
          return new RequestRunner({ environment, principal, request, recorder }).run();
        })
        .catch(failedResponse)
        .then(timed);
    }
    if (request.files === undefined && request.check !== true) {
      try {
        const short = this.#short(principal, request);
        if (short instanceof Promise) {
          return short.then(
            (result) => timed({ results: [result] }),
            (error: unknown) => timed(failedResponse(error)),
          );
        }
        if (short !== undefined) return timed({ results: [short] });
      } catch (error) {
        return timed(failedResponse(error));
      }
    }
    const runner = new RequestRunner({ environment: this.#environment, principal, request });
    return runner.run().then(timed);
  }

  planLive(principal: Principal, request: LiveRequest): LivePlan {
    return planLiveQuery(this.#environment, principal, request);
  }

  #noteTime(principal: Principal, request: SqlRequest, startMs: number): void {
    const { clock, limits } = this.#environment;
    if (limits.slowQueryMs === 0) return;
    const tookMs = clock.monotonicMs() - startMs;
    if (tookMs >= limits.slowQueryMs) this.#logSlow(principal, request, Math.round(tookMs));
  }

  /** Prints the statements anew, so that no password gets into the log. */
  #logSlow({ userId }: Principal, { sql }: SqlRequest, tookMs: number): void {
    let shown: string;
    try {
      shown = parseStatements(sql, parseLimitsOf(this.#environment))
        .map((node) => statementToSql(node))
        .join("; ");
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      shown = "(not parsable)";
    }
    this.#environment.log.warn("slow query", {
      ms: tookMs,
      user: userId,
      sql: shown.slice(0, SLOW_SQL_LENGTH_MAX),
    });
  }

  /** Runs the one statement of a text through the plan cache; undefined for the long way. */
  #short(
    principal: Principal,
    request: SqlRequest,
  ): ReturnType<StatementRunner["run"]> | undefined {
    const { limits } = this.#environment;
    if (request.sql.length > limits.sqlBytesMax) return undefined;
    const { types, values } = typedParameters(request.params, limits);
    const namespace = request.namespace ?? DEFAULT_NAMESPACE;
    const key = this.#plans.keyOf(request.sql, { namespace, types });
    if (key === undefined) return undefined;
    const prepared =
      this.#plans.get(key) ?? this.#prepare(request, { key, namespace, principal, types });
    if (prepared === undefined) return undefined;
    authorize(prepared.requirements, principal, this.#environment.catalog);
    const runner = new StatementRunner(this.#environment, deadlineOf(this.#environment, request));
    const { literals } = key.normalized;
    const parameters = literals.length === 0 ? values : [...values, ...literalValues(literals)];
    return runner.run(prepared, {
      principal,
      namespace,
      transaction: undefined,
      parameters,
      files: undefined,
    });
  }

  #prepare(
    { sql }: SqlRequest,
    {
      key,
      namespace,
      principal,
      types,
    }: {
      key: CacheKey;
      namespace: string;
      principal: Principal;
      types: readonly DataType[];
    },
  ): Prepared | undefined {
    const parsed = parseNormalized(sql, key.normalized, parseLimitsOf(this.#environment));
    if (parsed === undefined) return undefined;
    const { parameterCount, statement: node } = parsed;
    if (!isQueryNode(node)) return undefined;
    if (parameterCount !== types.length) return undefined;
    const statement = new StatementBinding(types);
    const context = dmlContextOf(this.#environment, { namespace, principal, statement });
    const prepared = prepare(node, { context, statement });
    requireNoGap(statement.usedParameters, types.length);
    this.#plans.set(key, prepared);
    return prepared;
  }
}

/** @throws What is no expected failure. */
function failedResponse(error: unknown): SqlResponse {
  if (!(error instanceof DatabaseError)) throw error;
  return { results: [], error: atStatement(error, 0) };
}
