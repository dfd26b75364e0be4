/**
 * Runs the SELECT statements whose rows the judge compares with the states of followers.
 *
 * A statement specifies the seq for each table, so it is an ordinary statement that shares no plan
 * with a live query. The seq is a parameter, so that the server plans each query once. Only the
 * administrator and the owner of rows may read earlier states. The administrator therefore asks on
 * behalf of the reader, with the conditions that make the two users' rows differ written out.
 */
import type { ServerProcess, SqlError } from "../../support/server_process.ts";
import { queryAsOf, type Schema } from "./tables.ts";

/** The server that runs the SELECT statements. */
export type JudgedServer = Pick<ServerProcess, "sql" | "token">;

/** A query of one user, with its parameters. */
export interface Asked {
  readonly user: string;
  readonly token: string;
  readonly sql: string;
  /** The query that also returns the seq of each row's newest table row, if there is one. */
  readonly seqSql?: string | undefined;
  readonly params: readonly unknown[];
  /** The tables that the query reads, as a {@linkcode CommitLedger} names them. */
  readonly tables: ReadonlySet<string>;
  /** The method that the subscription requests; undefined to let the server choose. */
  readonly way: "evaluated" | undefined;
}

/** The rows of a SELECT. */
export class SelectedRows {
  readonly error = undefined;
  /** The number of rows with each text. */
  readonly counts = new Map<string, number>();
  /** The number of columns; undefined if there are no rows. */
  readonly width: number | undefined;
  readonly rowCount: number;

  constructor(rows: readonly (readonly unknown[])[]) {
    this.rowCount = rows.length;
    this.width = rows[0]?.length;
    for (const cells of rows) {
      const text = JSON.stringify(cells);
      this.counts.set(text, this.countOf(text) + 1);
    }
  }

  countOf(text: string): number {
    return this.counts.get(text) ?? 0;
  }
}

/** The rows of a SELECT, or the error if there are none. */
export type Selected = SelectedRows | { readonly error: SqlError };

/**
 * The moment at which a query is read: a seq, or the present if there is none. For a query that
 * reads the time, also the time that it reads.
 */
export interface When {
  readonly seq: number | undefined;
  /** The time that the query reads, in milliseconds since 1970. */
  readonly timeMs?: number | undefined;
}

/** A SELECT that has been sent. */
interface Selecting {
  readonly asked: Asked;
  readonly when: When;
  readonly selected: Promise<Selected>;
}

/** The maximum number of simultaneous requests. */
const REQUESTS_MAX = 8;

export class Selects {
  readonly #server: JudgedServer;
  readonly #schema: () => Schema;
  readonly #selected = new Map<string, Selecting>();
  readonly #waiting: (() => void)[] = [];
  #requestCount = 0;
  #count = 0;

  constructor(server: JudgedServer, schema: () => Schema) {
    this.#server = server;
    this.#schema = schema;
  }

  /** How many SELECT statements have been run so far. */
  get count(): number {
    return this.#count;
  }

  /** Discards all cached rows except those for which the condition holds. */
  forgetUnless(isKept: (asked: Asked, when: When) => boolean): void {
    for (const [key, { asked, when }] of this.#selected) {
      if (!isKept(asked, when)) this.#selected.delete(key);
    }
  }

  /**
   * Whether a query can be read at an earlier seq. The reader may not read earlier states of
   * shared tables, and the administrator may not read earlier states of the reader's own rows.
   */
  hasPast(asked: Asked): boolean {
    const isOfAdministrator = asked.token === this.#server.token;
    return isOfAdministrator || !readsOwn(asked) || !/\b(?:shared|ruled|vw)\d/.test(asked.sql);
  }

  /** Runs a query. Followers of the same query share its rows. */
  async select(asked: Asked, when: When): Promise<Selected> {
    const { params, sql, token, user } = asked;
    const { seq, timeMs } = when;
    const asker = seq === undefined || readsOwn(asked) ? token : this.#server.token;
    const reader = asker === token || haveSameRows(asked) ? undefined : user;
    const key = JSON.stringify([asker, reader, sql, params, seq, timeMs]);
    const known = this.#selected.get(key);
    if (known !== undefined) return await known.selected;
    const selected = this.#select(asked, { asker, reader, when });
    this.#selected.set(key, { asked, when, selected });
    return await selected;
  }

  async #select(
    { params, sql }: Asked,
    {
      asker,
      reader,
      when: { seq, timeMs },
    }: { asker: string; reader: string | undefined; when: When },
  ): Promise<Selected> {
    const values = [...params];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    let text = sql;
    if (seq !== undefined) {
      const readsTables = /\b(?:shared|own|ruled|vw)\d/.test(sql);
      const moment = {
        // The parameter has the same position in every version of a query, so that the server
        // plans it once.
        seq: readsTables ? parameter(seq) : "",
        time:
          timeMs === undefined
            ? undefined
            : `${parameter(new Date(timeMs).toISOString())}::timestamptz`,
        user: reader === undefined ? undefined : `'${reader}'::text`,
      };
      text = queryAsOf(sql, this.#schema(), moment);
    }
    if (this.#requestCount >= REQUESTS_MAX) {
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    }
    this.#requestCount += 1;
    const options = { params: values, namespace: "fuzz", token: asker };
    const { body } = await this.#server.sql(text, options);
    this.#requestCount -= 1;
    this.#waiting.shift()?.();
    this.#count += 1;
    if (body.error !== undefined) return { error: body.error };
    return new SelectedRows(body.results[0]?.rows ?? []);
  }
}

/** Whether a query reads rows of USER tables, which belong to its user. */
function readsOwn({ sql }: Pick<Asked, "sql">): boolean {
  return /\bown\d/.test(sql);
}

/** Whether a query returns the same rows for all users. */
export function haveSameRows(asked: Pick<Asked, "sql">): boolean {
  return !readsOwn(asked) && !/\b(?:ruled\d|vw\d|CURRENT_USER\b)/.test(asked.sql);
}
