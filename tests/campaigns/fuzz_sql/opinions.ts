/**
 * Sends tables and views to DuckDB, asks it about queries, and filters out the differences that
 * are known to be caused by DuckDB.
 */
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { cellFromWire, roundedCell } from "./cells.ts";
import { type Copy, otherMeaningOf, type SecondOpinion } from "./duckdb.ts";
import { type Difference, noteOnce, type Outcome, shown } from "./outcome.ts";

export type CopiedTable = Pick<Copy, "name" | "columns">;

/** Keeps DuckDB's tables and views up to date, and collects its opinions on queries. */
export class Opinions {
  readonly #client: Bun.SQL;
  readonly #second: SecondOpinion;
  /** The definitions of the existing views, keyed by name. */
  readonly #views = new Map<string, string>();
  /** The number of differences that each known reason explains. */
  readonly otherMeanings: Map<string, number> = new Map();
  /** The number of queries on which DuckDB had an opinion. */
  count = 0;
  /**
   * The tables that must be copied to DuckDB before the next query; undefined if DuckDB is up to
   * date.
   */
  #stale: readonly CopiedTable[] | undefined;

  constructor(client: Bun.SQL, second: SecondOpinion) {
    this.#client = client;
    this.#second = second;
  }

  changed(tables: readonly CopiedTable[]): void {
    this.#stale = tables;
  }

  /**
   * Records a view.
   * @param sql A CREATE VIEW statement.
   */
  made(sql: string): void {
    this.#views.set(nameIn(sql), sql);
  }

  /**
   * Removes a view.
   * @param sql A DROP VIEW statement, or a definition of any other kind, which has no effect.
   */
  dropped(sql: string): void {
    this.#views.delete(nameIn(sql));
  }

  /**
   * Returns the difference between DuckDB's result and Tidemark's; undefined if the results agree,
   * if the reason is known, or if DuckDB has no opinion.
   */
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

/** A query, with Tidemark's result. */
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

/** Returns whether DuckDB agrees with Tidemark's result; undefined if DuckDB has no opinion. */
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

/**
 * Returns the name of the view that a definition creates or drops; empty for any other definition.
 */
function nameIn(sql: string): string {
  return /^(?:CREATE|DROP) VIEW (\w+)/.exec(sql)?.[1] ?? "";
}
