/**
 * Runs statements on each side of the comparison: Tidemark in-process, PostgreSQL, and, for
 * queries, DuckDB as a second opinion. DuckDB decides if PostgreSQL refuses a query.
 */
import type { DatabaseError } from "../../../src/base/errors.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { startPostgres } from "../../support/postgres.ts";
import { isAllowedRefusal } from "./allowed.ts";
import { cellFromPostgres, cellFromWire } from "./cells.ts";
import { openSecondOpinion } from "./duckdb.ts";
import { type CopiedTable, Opinions } from "./opinions.ts";
import { behindBarrier, REDUNDANT_KEY } from "./order_barrier.ts";
import { compare, type Difference, noteOnce, type Outcome } from "./outcome.ts";
import { openTidemark } from "./tidemark.ts";
import { findNode, type Node, node, textOf } from "./tree.ts";

/** PostgreSQL's time limit, in milliseconds. Without it, some statements would run for hours. */
const STATEMENT_MS_MAX = 10_000;

// Without these settings, PostgreSQL would spend half of its time compiling queries that run once
// and syncing data that is discarded anyway.
const POSTGRES_SETTINGS = [
  "timezone = 'UTC'",
  "extra_float_digits = 1",
  "jit = off",
  "synchronous_commit = off",
];

/** The way in which a statement is sent to Tidemark. */
export type Way = "alone" | "in a text" | "in a transaction";

export interface Sides extends AsyncDisposable {
  /** The number of statements that both sides refused, each with its own message. */
  readonly refusedCount: number;
  /**
   * Whether PostgreSQL refused the last statement in a way that `allowed.ts` permits, while
   * Tidemark ran it.
   */
  readonly wasAllowed: boolean;
  /** The number of queries on which DuckDB had an opinion. */
  readonly opinionCount: number;
  /** For each known reason, the number of DuckDB's differences that it explains. */
  readonly otherMeanings: ReadonlyMap<string, number>;
  /** For each listed reason, the number of PostgreSQL's differences that it explains. */
  readonly listed: ReadonlyMap<string, number>;
  /** Sets the tables that DuckDB should have, and marks their rows as changed. */
  readonly changed: (tables: readonly CopiedTable[]) => void;
  /**
   * Runs a statement that both sides accept unchanged.
   * @throws If a side refuses the statement.
   */
  readonly both: (sql: string) => Promise<void>;
  /**
   * Runs a statement that `allowed.ts` permits PostgreSQL to refuse. If PostgreSQL refuses it, the
   * statement runs on neither side. Returns whether it ran.
   */
  readonly ifBoth: (sql: string) => Promise<boolean>;
  /** Creates an index on both sides, or on neither. Returns whether the index was created. */
  readonly index: (sql: string, name: string) => Promise<boolean>;
  /**
   * Runs a statement that only Tidemark supports.
   * @throws If Tidemark refuses the statement.
   */
  readonly tidemark: (sql: string) => Promise<void>;
  /** Runs a statement on both sides and returns the difference; undefined if the sides agree. */
  difference(
    root: Node,
    options: { isOrdered: boolean; way: Way },
  ): Promise<Difference | undefined>;
}

/** The reason why PostgreSQL's result may not be the only correct result. */
const ROW_ORDER = "PostgreSQL's answer depends on the order in which the rows are stored";

/** Makes the trigram operators and indexes available if the installed PostgreSQL includes them. */
async function addTrigrams(client: Bun.SQL): Promise<void> {
  const found = await client`SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'`;
  if (found.length > 0) await client.unsafe("CREATE EXTENSION pg_trgm");
}

export async function openSides(): Promise<Sides> {
  const own = await openTidemark();
  const postgres = await startPostgres();
  const client = await connectedTo(postgres.url);
  await addTrigrams(client);
  const opinions = new Opinions(client, await openSecondOpinion());
  const listed = new Map<string, number>();
  let refusedCount = 0;
  let wasAllowed = false;
  let tables: readonly CopiedTable[] = [];
  return {
    tidemark: own.prepare,
    get refusedCount() {
      return refusedCount;
    },
    get wasAllowed() {
      return wasAllowed;
    },
    get opinionCount() {
      return opinions.count;
    },
    otherMeanings: opinions.otherMeanings,
    listed,
    changed(now) {
      tables = now;
      opinions.changed(now);
    },
    both: async (sql) => {
      await client.unsafe(sql);
      await own.prepare(sql);
      opinions.dropped(sql);
    },
    async ifBoth(sql) {
      if (!(await isTaken(client, sql))) return false;
      await own.prepare(sql);
      opinions.made(sql);
      return true;
    },
    async index(sql, name) {
      if (!(await own.mayIndex(sql))) return false;
      try {
        await client.unsafe(sql);
        return true;
      } catch (error) {
        // PostgreSQL considers fewer functions immutable than Tidemark does. For example,
        // PostgreSQL's cast of a date to text is not immutable.
        if (!(error instanceof Bun.SQL.PostgresError)) throw error;
        await own.prepare(`DROP INDEX ${name}`);
        return false;
      }
    },
    async difference(root, { isOrdered, way }) {
      const response = await own.ask(sentText(root, way));
      if (response.error !== undefined && isUnavailable(response.error)) {
        return unavailable(response.error);
      }
      const width = findNode(root, "outputs")?.pieces.length;
      const theirs = await postgresOutcome(client, root, { width, response, isOrdered });
      const ours = tidemarkOutcome(response, { way, isOrdered });
      if (ours.kind === "failure" && theirs.kind === "failure") refusedCount += 1;
      const sql = textOf(root);
      wasAllowed =
        ours.kind === "rows" && theirs.kind === "failure" && isAllowedRefusal(theirs.message, sql);
      const found = wasAllowed ? undefined : compare(ours, theirs);
      const asked = { width, response, isOrdered, ours, tables, theirs };
      const because = found && (await reasonOf(client, root, asked));
      if (because !== undefined) {
        noteOnce(listed, because);
        return undefined;
      }
      if (found !== undefined || ours.kind === "failure" || root.sort !== "query") return found;
      const said = theirs.kind === "rows" ? "the same" : theirs.message;
      const entry = entryOf(response, way);
      return await opinions.difference(sql, { entry, isOrdered, postgres: said });
    },
    async [Symbol.asyncDispose]() {
      await client.close();
      await postgres.stop();
      opinions.close();
      await own[Symbol.asyncDispose]();
    },
  };
}

async function connectedTo(url: string): Promise<Bun.SQL> {
  const client = new Bun.SQL(url, { max: 1, bigint: true });
  const settings = [...POSTGRES_SETTINGS, `statement_timeout = ${STATEMENT_MS_MAX}`];
  await client.unsafe(settings.map((setting) => `SET ${setting}`).join("; "));
  return client;
}

/** Runs a statement that `allowed.ts` permits PostgreSQL to refuse. Returns whether it ran. */
async function isTaken(client: Bun.SQL, sql: string): Promise<boolean> {
  try {
    await client.unsafe(sql);
    return true;
  } catch (error) {
    if (!(error instanceof Bun.SQL.PostgresError)) throw error;
    if (!isAllowedRefusal(error.message, sql)) throw error;
    return false;
  }
}

/**
 * Whether an error says nothing about the result: Tidemark does not support the statement, or a
 * busy machine took too long over the call of a function.
 */
function isUnavailable({ code, message }: DatabaseError): boolean {
  const isSlow = code === "LIMIT_EXCEEDED" && message.includes("each call may take at most");
  return code === "UNSUPPORTED_FEATURE" || isSlow;
}

/**
 * Returns the difference for a statement that Tidemark does not support. The statement is not sent
 * to PostgreSQL, because a change made only there would remain a permanent difference.
 */
function unavailable({ message }: DatabaseError): Difference {
  return { tidemark: message, postgres: "not asked", isValueError: false, isUnavailable: true };
}

/** A statement whose results differ, with everything needed to query PostgreSQL again. */
interface Question {
  readonly isOrdered: boolean;
  readonly ours: Outcome;
  readonly response: SqlResponse;
  readonly tables: readonly CopiedTable[];
  readonly theirs: Outcome;
  readonly width: number | undefined;
}

/**
 * Returns a reason, confirmed by PostgreSQL itself, why its result may differ; undefined if there
 * is none.
 */
async function reasonOf(
  client: Bun.SQL,
  root: Node,
  question: Question,
): Promise<string | undefined> {
  // If Tidemark failed, no accepted reason can explain the difference.
  if (question.ours.kind !== "rows") return undefined;
  if (question.isOrdered && (await isRightBehindBarrier(client, root, question))) {
    return REDUNDANT_KEY;
  }
  return (await hangsOnRowOrder(client, root, question)) ? ROW_ORDER : undefined;
}

/**
 * Returns whether PostgreSQL returns Tidemark's rows in the same order when it does not know which
 * keys are equal.
 */
async function isRightBehindBarrier(
  client: Bun.SQL,
  root: Node,
  { ours, response, width }: Question,
): Promise<boolean> {
  const barrier = behindBarrier(root);
  if (barrier === undefined) return false;
  const asked = { width, response, isOrdered: true };
  const theirs = await postgresOutcome(client, node("query", barrier), asked);
  return theirs.kind === "rows" && compare(ours, theirs) === undefined;
}

/**
 * Returns whether PostgreSQL's own result changes when the rows of its tables are stored in
 * reverse order. For example, the last digits of a sum of DOUBLE may change. In that case, neither
 * result can be called correct.
 */
async function hangsOnRowOrder(
  client: Bun.SQL,
  root: Node,
  { isOrdered, response, tables, theirs, width }: Question,
): Promise<boolean> {
  if (root.sort !== "query" || theirs.kind !== "rows") return false;
  // In this role, no trigger fires while the rows are stored again.
  await client.unsafe("BEGIN; SET LOCAL session_replication_role = replica");
  try {
    for (const { name } of tables) {
      await client.unsafe(
        `CREATE TEMP TABLE turned ON COMMIT DROP AS SELECT * FROM ${name} ORDER BY ctid DESC; ` +
          `DELETE FROM ${name}; INSERT INTO ${name} SELECT * FROM turned; DROP TABLE turned`,
      );
    }
    const turned = await postgresOutcome(client, root, { width, response, isOrdered });
    return turned.kind === "rows" && compare(turned, theirs) !== undefined;
  } catch (error) {
    // The rows of a table cannot be reversed if one of its columns cannot be written.
    if (error instanceof Bun.SQL.PostgresError) return false;
    throw error;
  } finally {
    await client.unsafe("ROLLBACK");
  }
}

function sentText(root: Node, way: Way): string {
  const sql = textOf(root);
  if (way === "alone") return sql;
  return way === "in a text" ? `USE "default"; ${sql}` : `BEGIN; ${sql}; COMMIT`;
}

function entryOf({ results }: SqlResponse, way: Way): SqlResponse["results"][number] | undefined {
  return results[way === "alone" ? 0 : 1];
}

interface OutcomeOptions {
  readonly isOrdered: boolean;
  readonly way: Way;
}

function tidemarkOutcome(response: SqlResponse, { isOrdered, way }: OutcomeOptions): Outcome {
  const { error } = response;
  if (error !== undefined) {
    return { kind: "failure", condition: error.code, message: error.message };
  }
  const entry = entryOf(response, way);
  const { rowCount = 0, rows, schema = [] } = entry ?? {};
  if (rows === undefined) return { kind: "rows", rows: [`${rowCount} row(s) changed`] };
  const texts = rows.map((row) =>
    schema.map(({ data_type }, i) => cellFromWire(row[i], data_type)).join(" | "),
  );
  return { kind: "rows", rows: isOrdered ? texts : texts.toSorted() };
}

async function postgresOutcome(
  client: Bun.SQL,
  root: Node,
  {
    width,
    response,
    isOrdered,
  }: { width: number | undefined; response: SqlResponse; isOrdered: boolean },
): Promise<Outcome> {
  const sql = textOf(root);
  // If the response is a failure, any schema will do, because no rows are compared.
  const schema = response.results.find((entry) => entry.schema !== undefined)?.schema ?? [];
  const names = Array.from({ length: width ?? 0 }, (_, i) => `c${i + 1}`);
  const texts = names.map((name) => `${name}::text`).join(", ");
  const isChange = root.sort === "change";
  try {
    if (width === undefined) {
      const result = await client.unsafe(sql);
      return { kind: "rows", rows: [`${String(result.count)} row(s) changed`] };
    }
    const wrapped = isChange
      ? `WITH q(${names.join(", ")}) AS (${sql}) SELECT ${texts} FROM q`
      : `SELECT ${texts} FROM (${sql}) AS q(${names.join(", ")})`;
    const rows: (string | null)[][] = await client.unsafe(wrapped).values();
    const lines = [...rows].map((row) =>
      row.map((cell, i) => cellFromPostgres(cell, schema[i]?.data_type ?? "Text")).join(" | "),
    );
    return { kind: "rows", rows: isOrdered ? lines : lines.toSorted() };
  } catch (error) {
    if (!(error instanceof Bun.SQL.PostgresError)) throw error;
    return { kind: "failure", condition: String(error.errno), message: error.message };
  }
}
