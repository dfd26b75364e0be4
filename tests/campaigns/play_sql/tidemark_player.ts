/**
 * Plays scripts on Tidemark: on the real server, over HTTP. A transaction in the script uses
 * `/v1/api/transactions`, and COPY uses `/v1/api/copy`. In Tidemark, SET and PREPARE last for a
 * single request, so SET is sent again before each statement, and PREPARE before each EXECUTE.
 */
import type { DataTypeWord } from "../../../src/protocol/mod.ts";
import { textOfArrayCell } from "../../../src/sql/mod.ts";
import {
  type ServerProcess,
  type SqlEntry,
  type SqlError,
  startReadyServer,
} from "../../support/server_process.ts";
import type { Cell, Played } from "./played.ts";
import type { ScriptStatement } from "./psql_script.ts";

const KEPT_SETTINGS =
  /^set\s+(?:session\s+)?(?:datestyle|intervalstyle|time\s+zone|timezone|extra_float_digits|search_path|bytea_output|work_mem|\w+\.\w+)\b/i;

const PREPARE = /^prepare\s+("[^"]+"|\w+)/i;
const EXECUTE = /\bexecute\s+("[^"]+"|\w+)/i;
const DEALLOCATE = /^deallocate\s+(?:prepare\s+)?("[^"]+"|\w+)/i;
const DROP_SCHEMA = /^drop\s+schema\s+(?:if\s+exists\s+)?("[^"]+"|\w+)/i;

const TRANSACTION_CONTROL =
  /^(?:begin|start|commit|end|rollback|abort|savepoint|release|prepare\s+transaction)\b/i;
/** The savepoint before a statement within a transaction. */
const GUARD = "before_statement";

const SYSTEM_COLUMNS: ReadonlySet<string> = new Set(["_seq", "_deleted"]);

/** The lists of objects that scripts have created. */
const LEFT_NAMES = [
  "SELECT table_name FROM information_schema.tables",
  "SELECT sequence_name FROM information_schema.sequences",
  "SELECT routine_name FROM information_schema.routines",
  "SELECT trigger_name FROM information_schema.triggers",
  "SELECT schema_name FROM information_schema.schemata",
  "SELECT type_name FROM system.types",
].join(" UNION ");

export interface TidemarkPlayer extends AsyncDisposable {
  /** Discards the previous script's settings and transaction. */
  readonly begin: () => void;
  readonly play: (statement: ScriptStatement) => Promise<Played>;
  /**
   * Prepares for a statement that PostgreSQL may accept although Tidemark refuses it. Returns a
   * function that undoes the failure of the statement, so that its transaction goes on.
   */
  readonly guard: (sql: string) => Promise<(ours: Played, theirs: Played) => Promise<void>>;
  /**
   * Runs a query again with its columns cast to text, which returns values in PostgreSQL's text
   * form.
   */
  readonly playAsText: (sql: string) => Promise<Played>;
  /** Returns the names of the objects that the scripts have created and not dropped. */
  readonly leftNames: () => Promise<ReadonlySet<string>>;
}

export async function openTidemarkPlayer(): Promise<TidemarkPlayer> {
  const server = await startReadyServer({ config: { limits: { queries_per_sec_per_user: 0 } } });
  let player = new Player(server);
  return {
    begin: () => {
      player = new Player(server);
    },
    play: (statement) => player.play(statement),
    guard: (sql) => player.guard(sql),
    playAsText: (sql) => player.playAsText(sql),
    leftNames: async () => {
      const played = await new Player(server).play({ sql: LEFT_NAMES, line: 0 });
      if (played.kind === "failure") throw new Error(`Tidemark refused: ${played.message}`);
      return new Set(played.rows.map(([name]) => name ?? ""));
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

class Player {
  readonly #server: ServerProcess;
  readonly #settings = new Map<string, string>();
  /** The PREPARE statements, keyed by name. */
  readonly #prepared = new Map<string, string>();
  /** The names of the statements that the open transaction has prepared. */
  readonly #known = new Set<string>();
  #transaction: string | undefined;
  #columnCount = 0;

  constructor(server: ServerProcess) {
    this.#server = server;
  }

  async play({ sql, data }: ScriptStatement): Promise<Played> {
    if (/^copy\b/i.test(sql)) return await this.#copy(sql, data);
    if (this.#transaction === undefined && /^(?:begin|start\s+transaction)\b/i.test(sql)) {
      return await this.#begin(/\bread\s+only\b/i.test(sql));
    }
    const played = await this.#ask(sql);
    this.#note(sql, played);
    const setting = KEPT_SETTINGS.exec(sql);
    if (setting !== null && played.kind === "rows") this.#settings.set(setting[0], sql);
    if (/^(?:commit|end|rollback|abort)\b(?!\s+(?:work\s+|transaction\s+)?to\b)/i.test(sql)) {
      this.#transaction = undefined;
      this.#known.clear();
    }
    return played;
  }

  async guard(sql: string): Promise<(ours: Played, theirs: Played) => Promise<void>> {
    if (this.#transaction === undefined || TRANSACTION_CONTROL.test(sql)) return async () => {};
    const set = await this.#ask(`SAVEPOINT ${GUARD}`);
    if (set.kind === "failure") return async () => {};
    return async (ours, theirs) => {
      const isUndone = ours.kind === "failure" && theirs.kind === "rows";
      if (isUndone) await this.#ask(`ROLLBACK TO SAVEPOINT ${GUARD}`);
      if (isUndone || ours.kind === "rows") await this.#ask(`RELEASE SAVEPOINT ${GUARD}`);
    };
  }

  /**
   * Remembers PREPARE statements, and discards settings and prepared statements that no longer
   * apply.
   */
  #note(sql: string, played: Played): void {
    const gone = DEALLOCATE.exec(sql)?.[1];
    if (gone?.toLowerCase() === "all") this.#prepared.clear();
    else if (gone !== undefined) this.#prepared.delete(gone);
    if (played.kind === "failure") return;
    const prepared = PREPARE.exec(sql)?.[1];
    if (prepared !== undefined) {
      this.#prepared.set(prepared, sql);
      if (this.#transaction !== undefined) this.#known.add(prepared);
    }
    // PostgreSQL ignores a schema in search_path that does not exist.
    const schema = DROP_SCHEMA.exec(sql)?.[1];
    for (const [name, text] of this.#settings) {
      const isPath = /^set\s+(?:session\s+)?search_path/i.test(name);
      if (schema !== undefined && isPath && text.includes(schema)) this.#settings.delete(name);
    }
  }

  /**
   * Returns the PREPARE statement for the statement that `sql` executes or deallocates; an empty
   * list if there is none.
   */
  #prepareFor(sql: string): readonly string[] {
    const name = (EXECUTE.exec(sql) ?? DEALLOCATE.exec(sql))?.[1];
    const text = name === undefined ? undefined : this.#prepared.get(name);
    if (name === undefined || text === undefined || this.#known.has(name)) return [];
    if (this.#transaction !== undefined) this.#known.add(name);
    return [text];
  }

  async playAsText(sql: string): Promise<Played> {
    const names = Array.from({ length: this.#columnCount }, (_, i) => `c${i + 1}`);
    const casts = names.map((name) => `x.${name}::text`).join(", ");
    return await this.#ask(`SELECT ${casts} FROM (${sql}\n) AS x(${names.join(", ")})`);
  }

  async #begin(isReadOnly: boolean): Promise<Played> {
    const options = { read_only: isReadOnly };
    const answer = await this.#server.post("/v1/api/transactions", options, this.#headers());
    const body = (await answer.json()) as { transaction_id?: string; error?: SqlError };
    this.#transaction = body.transaction_id;
    return body.error === undefined ? { kind: "rows", rows: [] } : failureOf(body.error);
  }

  async #ask(sql: string): Promise<Played> {
    const text = [...this.#settings.values(), ...this.#prepareFor(sql), sql].join(";\n");
    const answer = await this.#server.post("/v1/api/sql", { sql: text }, this.#headers());
    const body = (await answer.json()) as { results: SqlEntry[]; error?: SqlError };
    if (body.error !== undefined) return failureOf(body.error);
    const entry = body.results.at(-1);
    const fields = entry?.schema ?? [];
    this.#columnCount = fields.filter(({ name }) => !SYSTEM_COLUMNS.has(name)).length;
    return { kind: "rows", rows: rowsOf(entry) };
  }

  async #copy(sql: string, data = ""): Promise<Played> {
    const url = `${this.#server.url}/v1/api/copy?sql=${encodeURIComponent(sql)}`;
    const answer = await fetch(url, { method: "POST", headers: this.#headers(), body: data });
    const text = await answer.text();
    if (!answer.ok) return failureOf((JSON.parse(text) as { error: SqlError }).error);
    if (/^copy\s+[^(\s][\s\S]*?\bfrom\b/i.test(sql)) return { kind: "rows", rows: [] };
    const lines = text.replace(/\n$/, "").split("\n");
    return { kind: "rows", rows: text === "" ? [] : lines.map((line) => [line]) };
  }

  #headers(): Record<string, string> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#server.token}` };
    if (this.#transaction !== undefined) headers["Tidemark-Transaction"] = this.#transaction;
    return headers;
  }
}

function failureOf({ code, reason, message, hint }: SqlError): Played {
  return { kind: "failure", code: reason ?? code, message: `${message} ${hint ?? ""}`.trim() };
}

/** Returns the rows without the system columns, which `SELECT *` shows only in Tidemark. */
function rowsOf(entry: SqlEntry | undefined): readonly (readonly Cell[])[] {
  const fields = entry?.schema ?? [];
  return (entry?.rows ?? []).map((row) =>
    row
      .map((cell, i) => textOf(cell, fields[i]?.data_type))
      .filter((_, i) => !SYSTEM_COLUMNS.has(fields[i]?.name ?? "")),
  );
}

/** The days of 0001-01-01 and 9999-12-31. Days outside this range are read again as text. */
const DAYS_SHOWN: readonly [number, number] = [-719_162, 2_932_896];

function textOfDay(days: number): string {
  if (days < DAYS_SHOWN[0] || days > DAYS_SHOWN[1]) return String(days);
  return new Date(days * 86_400_000).toISOString().slice(0, 10);
}

function textOf(cell: unknown, type: DataTypeWord | undefined): Cell {
  if (cell === null || cell === undefined) return undefined;
  if (typeof type === "object" && "Array" in type) return textOfArrayCell(cell, type.Array);
  if (typeof cell === "number" && type === "Date") return textOfDay(cell);
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}
