/**
 * The sides of the comparison: Tidemark in this process and PostgreSQL, and about queries DuckDB's
 * second opinion, which decides what PostgreSQL refuses to judge.
 */
import type { DatabaseError } from "../../src/base/errors.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { startPostgres } from "../../tests/support/postgres.ts";
import { isAllowedRefusal, OF_VALUES } from "./allowed.ts";
import { cellFromPostgres, cellFromWire, roundedCell } from "./cells.ts";
import { type Copy, openSecondOpinion, otherMeaningOf, type SecondOpinion } from "./duckdb.ts";
import { behindBarrier, REDUNDANT_KEY } from "./order_barrier.ts";
import { openTidemark } from "./tidemark.ts";
import { findNode, type Node, node, textOf } from "./tree.ts";

const ROWS_SHOWN_MAX = 8;

/** Of PostgreSQL: some statements take it hours. */
const STATEMENT_MS_MAX = 10_000;

// Machine code for queries that run once, and syncs of what nobody keeps, are half of its time.
const POSTGRES_SETTINGS = [
  "timezone = 'UTC'",
  "extra_float_digits = 1",
  "jit = off",
  "synchronous_commit = off",
];

/** How a statement is sent to Tidemark. */
export type Way = "alone" | "in a text" | "in a transaction";

export interface Sides extends AsyncDisposable {
  /** How many statements both sides refused, each in its own words. */
  readonly refusedCount: number;
  /** Whether PostgreSQL refused the last statement as it may, and Tidemark ran it. */
  readonly wasAllowed: boolean;
  /** How many queries DuckDB had an opinion of. */
  readonly opinionCount: number;
  /** How often DuckDB differed for each reason that is known. */
  readonly otherMeanings: ReadonlyMap<string, number>;
  /** How often PostgreSQL differed for each reason that is listed. */
  readonly listed: ReadonlyMap<string, number>;
  /** Says which tables DuckDB is to have, and that their rows may have changed. */
  readonly changed: (tables: readonly CopiedTable[]) => void;
  /** Runs what both sides take as it is. @throws When a side refuses. */
  readonly both: (sql: string) => Promise<void>;
  /** Runs what PostgreSQL may refuse as `allowed.ts` says, on neither side then. */
  readonly ifBoth: (sql: string) => Promise<boolean>;
  /** Runs what only Tidemark has. @throws When it refuses. */
  readonly tidemark: (sql: string) => Promise<void>;
  /** Runs a statement on both sides; undefined when they agree. */
  difference(
    root: Node,
    options: { isOrdered: boolean; way: Way },
  ): Promise<Difference | undefined>;
}

type CopiedTable = Pick<Copy, "name" | "columns">;

export interface Difference {
  readonly tidemark: string;
  /** What DuckDB says otherwise, when PostgreSQL agrees or says nothing. */
  readonly duckdb?: string;
  readonly postgres: string;
  /** Only one side failed, for a value: it may have evaluated what the other did not. */
  readonly isValueError: boolean;
  /** Tidemark said that it is not available yet. */
  readonly isUnavailable: boolean;
}

type Outcome =
  | { readonly kind: "rows"; readonly rows: readonly string[] }
  | { readonly kind: "failure"; readonly condition: string; readonly message: string };

/** Why PostgreSQL's answer is not the only right one. */
const ROW_ORDER = "its answer hangs on the order in which the rows lie";

export async function openSides(): Promise<Sides> {
  const own = await openTidemark();
  const postgres = await startPostgres();
  const client = new Bun.SQL(postgres.url, { max: 1, bigint: true });
  const settings = [...POSTGRES_SETTINGS, `statement_timeout = ${STATEMENT_MS_MAX}`];
  await client.unsafe(settings.map((setting) => `SET ${setting}`).join("; "));
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
      try {
        await client.unsafe(sql);
      } catch (error) {
        if (!(error instanceof Bun.SQL.PostgresError) || !isAllowedRefusal(error.message, sql))
          throw error;
        return false;
      }
      await own.prepare(sql);
      opinions.made(sql);
      return true;
    },
    async difference(root, { isOrdered, way }) {
      const response = await own.ask(sentText(root, way));
      if (response.error?.condition === "UNSUPPORTED_FEATURE") return unavailable(response.error);
      const width = findNode(root, "outputs")?.pieces.length;
      const theirs = await postgresOutcome(client, root, { width, response, isOrdered });
      const ours = tidemarkOutcome(response, { way, isOrdered });
      if (ours.kind === "failure" && theirs.kind === "failure") refusedCount += 1;
      const sql = textOf(root);
      wasAllowed =
        ours.kind === "rows" && theirs.kind === "failure" && isAllowedRefusal(theirs.message, sql);
      const found = wasAllowed ? undefined : compare(ours, theirs);
      const asked = { width, response, isOrdered, ours };
      if (isOrdered && found !== undefined && (await isRightBehindBarrier(client, root, asked))) {
        noteOnce(listed, REDUNDANT_KEY);
        return undefined;
      }
      if (
        found !== undefined &&
        (await hangsOnRowOrder(client, root, { ...asked, tables, theirs }))
      ) {
        noteOnce(listed, ROW_ORDER);
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

/** The other side is not asked: a change that only it makes would be a difference for ever. */
function unavailable({ message }: DatabaseError): Difference {
  return { tidemark: message, postgres: "not asked", isValueError: false, isUnavailable: true };
}

/** Whether PostgreSQL gives our rows in our order where it knows of no equal keys. */
async function isRightBehindBarrier(
  client: Bun.SQL,
  root: Node,
  { ours, response, width }: { width: number | undefined; response: SqlResponse; ours: Outcome },
): Promise<boolean> {
  const barrier = behindBarrier(root);
  if (barrier === undefined || ours.kind !== "rows") return false;
  const asked = { width, response, isOrdered: true };
  const theirs = await postgresOutcome(client, node("query", barrier), asked);
  return theirs.kind === "rows" && compare(ours, theirs) === undefined;
}

/**
 * Whether PostgreSQL answers otherwise itself when the rows of its tables lie in reverse, as a sum of
 * DOUBLE may in its first digit. Nobody can say then which answer is right.
 */
async function hangsOnRowOrder(
  client: Bun.SQL,
  root: Node,
  { isOrdered, response, tables, theirs, width }: RowOrderQuestion,
): Promise<boolean> {
  if (root.sort !== "query" || theirs.kind !== "rows") return false;
  await client.unsafe("BEGIN");
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
    // A table with a column that cannot be written cannot be turned.
    if (error instanceof Bun.SQL.PostgresError) return false;
    throw error;
  } finally {
    await client.unsafe("ROLLBACK");
  }
}

interface RowOrderQuestion {
  readonly isOrdered: boolean;
  readonly response: SqlResponse;
  readonly tables: readonly CopiedTable[];
  readonly theirs: Outcome;
  readonly width: number | undefined;
}

function noteOnce(counts: Map<string, number>, because: string): void {
  counts.set(because, (counts.get(because) ?? 0) + 1);
}

function sentText(root: Node, way: Way): string {
  const sql = textOf(root);
  if (way === "alone") return sql;
  return way === "in a text" ? `USE "default"; ${sql}` : `BEGIN; ${sql}; COMMIT`;
}

function entryOf({ results }: SqlResponse, way: Way): SqlResponse["results"][number] | undefined {
  return results[way === "alone" ? 0 : 1];
}

/** The name of the view or table that a definition is about. */
function nameIn(sql: string): string {
  return /^(?:CREATE|DROP) VIEW (\w+)/.exec(sql)?.[1] ?? "";
}

/** What DuckDB is told of tables and views, and what it says of queries. */
class Opinions {
  readonly #client: Bun.SQL;
  readonly #second: SecondOpinion;
  /** Texts of the views that there are, by name. */
  readonly #views = new Map<string, string>();
  /** How often it differed for each reason that is known. */
  readonly otherMeanings = new Map<string, number>();
  /** How many queries it had an opinion of. */
  count = 0;
  /** What it is to copy before the next query. */
  #stale: readonly CopiedTable[] | undefined;

  constructor(client: Bun.SQL, second: SecondOpinion) {
    this.#client = client;
    this.#second = second;
  }

  changed(tables: readonly CopiedTable[]): void {
    this.#stale = tables;
  }

  /** @param sql CREATE VIEW. */
  made(sql: string): void {
    this.#views.set(nameIn(sql), sql);
  }

  /** @param sql DROP VIEW, or any other definition. */
  dropped(sql: string): void {
    this.#views.delete(nameIn(sql));
  }

  /** How it differs, unless that is known; undefined also when it has no opinion. */
  async difference(
    sql: string,
    { entry, isOrdered, postgres }: Answered & { readonly postgres: string },
  ): Promise<Difference | undefined> {
    if (this.#stale !== undefined) {
      await this.#second.copy(await copiesOf(this.#client, this.#stale), this.#views);
    }
    this.#stale = undefined;
    const opinion = await opinionOf(this.#second, sql, { entry, isOrdered });
    if (opinion !== undefined) this.count += 1;
    if (opinion?.difference === undefined) return undefined;
    const because = otherMeaningOf([sql, ...this.#views.values()].join(" "));
    if (because === undefined) return { ...opinion.difference, postgres };
    noteOnce(this.otherMeanings, because);
    return undefined;
  }

  close(): void {
    this.#second.close();
  }
}

/** What Tidemark answered a query. */
interface Answered {
  readonly entry: SqlResponse["results"][number] | undefined;
  readonly isOrdered: boolean;
}

async function copiesOf(client: Bun.SQL, tables: readonly CopiedTable[]): Promise<Copy[]> {
  const copies: Copy[] = [];
  for (const { columns, name } of tables) {
    const cells = columns.map((column) => `${column.name}::text`).join(", ");
    const rows: (string | null)[][] = await client.unsafe(`SELECT ${cells} FROM ${name}`).values();
    copies.push({ name, columns, rows: [...rows] });
  }
  return copies;
}

/** Whether DuckDB agrees; undefined when it has no opinion. */
async function opinionOf(
  second: SecondOpinion,
  sql: string,
  { entry, isOrdered }: { entry: SqlResponse["results"][number] | undefined; isOrdered: boolean },
): Promise<{ readonly difference?: Omit<Difference, "postgres"> } | undefined> {
  const { rows = [], schema = [] } = entry ?? {};
  const types = schema.map(({ data_type }) => data_type);
  const said = await second.rows(sql, types);
  if (said === undefined) return undefined;
  const own = rows.map((row) =>
    types.map((type, i) => roundedCell(cellFromWire(row[i], type), type)).join(" | "),
  );
  const ours: Outcome = { kind: "rows", rows: isOrdered ? own : own.toSorted() };
  const theirs: Outcome = { kind: "rows", rows: isOrdered ? said : said.toSorted() };
  if (ours.rows.join("\n") === theirs.rows.join("\n")) return {};
  const [tidemark, duckdb] = [shown(ours, theirs), shown(theirs, ours)];
  return { difference: { tidemark, duckdb, isValueError: false, isUnavailable: false } };
}

interface OutcomeOptions {
  readonly isOrdered: boolean;
  readonly way: Way;
}

function tidemarkOutcome(response: SqlResponse, { isOrdered, way }: OutcomeOptions): Outcome {
  const { error } = response;
  if (error !== undefined) {
    return { kind: "failure", condition: error.condition, message: error.message };
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
  // Of a failed response any entry will do: the rows are not compared.
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

function compare(ours: Outcome, theirs: Outcome): Difference | undefined {
  if (ours.kind === "failure" && theirs.kind === "failure") {
    if (ours.condition !== "INTERNAL_ERROR") return undefined;
  } else if (ours.kind === "rows" && theirs.kind === "rows") {
    if (ours.rows.join("\n") === theirs.rows.join("\n")) return undefined;
  }
  return {
    tidemark: shown(ours, theirs),
    postgres: shown(theirs, ours),
    isValueError:
      ours.kind === "failure"
        ? OF_VALUES.has(ours.condition)
        : theirs.kind === "failure" && theirs.condition.startsWith("22"),
    isUnavailable: false,
  };
}

/** What happened on one side; of rows those that stand on the other side in no or another place. */
function shown(outcome: Outcome, other: Outcome): string {
  if (outcome.kind === "failure") return `${outcome.condition}: ${outcome.message}`;
  const theirs = other.kind === "rows" ? other.rows : [];
  const missing = outcome.rows.filter((row) => !theirs.includes(row));
  const moved = outcome.rows.filter((row, i) => row !== theirs[i]);
  const lines = (missing.length > 0 ? missing : moved).slice(0, ROWS_SHOWN_MAX);
  return [`${outcome.rows.length} row(s)`, ...lines.map((line) => `    ${line}`)].join("\n");
}
