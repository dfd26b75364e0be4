/**
 * Uses PostgreSQL as the oracle for played scripts. All statements go through a single psql
 * process, so that they share a session, and results have the form in which PostgreSQL prints
 * them.
 */
import { join } from "node:path";
import { postgresPrograms, startPostgres } from "../../support/postgres.ts";
import type { LeftObjects } from "./omitted_objects.ts";
import type { Played } from "./played.ts";
import type { ScriptStatement } from "./psql_script.ts";

const CELL = "\u001f";
const ROW = "\u001e";
const NULL_TEXT = "\u001d";
const MARK = "\u001c";

/**
 * Drops the publications that an earlier script has left. One of all tables would refuse every
 * UPDATE of a table without a key.
 */
const DROP_PUBLICATIONS = `DO $$ DECLARE name TEXT; BEGIN
  FOR name IN SELECT pubname FROM pg_publication LOOP
    EXECUTE format('DROP PUBLICATION %I', name);
  END LOOP;
END $$`;

/** The lists of objects that scripts have created, except temporary relations. */
const LEFT_NAMES = [
  "SELECT relname FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't'",
  "SELECT typname FROM pg_type WHERE oid >= 16384 AND typrelid = 0",
  ...[
    ["pg_proc", "proname"],
    ["pg_namespace", "nspname"],
    ["pg_trigger", "tgname"],
    ["pg_collation", "collname"],
    ["pg_conversion", "conname"],
    ["pg_opclass", "opcname"],
    ["pg_opfamily", "opfname"],
    ["pg_am", "amname"],
    ["pg_language", "lanname"],
    ["pg_extension", "extname"],
    ["pg_publication", "pubname"],
    ["pg_subscription", "subname"],
    ["pg_event_trigger", "evtname"],
    ["pg_foreign_server", "srvname"],
    ["pg_foreign_data_wrapper", "fdwname"],
    ["pg_statistic_ext", "stxname"],
    ["pg_ts_config", "cfgname"],
    ["pg_ts_dict", "dictname"],
    ["pg_policy", "polname"],
    ["pg_rewrite", "rulename"],
  ].map(([catalog, name]) => `SELECT ${name} FROM ${catalog} WHERE oid >= 16384`),
].join(" UNION ");
const LEFT_CASTS =
  "SELECT castsource::regtype, casttarget::regtype FROM pg_cast WHERE oid >= 16384";
const LEFT_OPERATORS = "SELECT oprname FROM pg_operator WHERE oid >= 16384";

const STATEMENT_MS_MAX = 20_000;
const ANSWER_MS_MAX = 25_000;

export interface PostgresPlayer extends AsyncDisposable {
  /** Begins a new session in PostgreSQL. */
  readonly begin: () => Promise<void>;
  readonly play: (statement: ScriptStatement) => Promise<Played>;
  /** Returns the objects that the scripts have created and not dropped. */
  readonly leftObjects: () => Promise<LeftObjects>;
}

export async function openPostgresPlayer(): Promise<PostgresPlayer> {
  const postgres = await startPostgres();
  let session = new Session(postgres.url);
  const begin = async (): Promise<void> => {
    await session.end();
    session = new Session(postgres.url);
    await session.play({ sql: DROP_PUBLICATIONS, line: 0 });
  };
  return {
    begin,
    async play(statement) {
      const played = await session.play(statement);
      if (played !== undefined) return played;
      // psql is still waiting for input, for example because a string has not been closed.
      await begin();
      return { kind: "failure", code: "57014", message: "psql did not answer" };
    },
    async leftObjects() {
      // The script may have left a transaction open, or a setting that hides the catalog.
      await begin();
      const read = async (sql: string): Promise<readonly (readonly string[])[]> => {
        const played = await session.play({ sql, line: 0 });
        if (played?.kind !== "rows") throw new Error(`PostgreSQL refused: ${sql}`);
        return played.rows.map((row) => row.map((cell) => cell ?? ""));
      };
      const casts = await read(LEFT_CASTS);
      return {
        names: new Set((await read(LEFT_NAMES)).flat()),
        casts: casts.map(([source = "", target = ""]) => [source, target] as const),
        operators: new Set((await read(LEFT_OPERATORS)).flat()),
      };
    },
    async [Symbol.asyncDispose]() {
      await session.end();
      await postgres.stop();
    },
  };
}

class Session {
  readonly #psql: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #read: () => Promise<string>;
  readonly #readErrors: () => Promise<string>;

  constructor(url: string) {
    const form = ["-F", CELL, "-R", ROW, "-P", `null=${NULL_TEXT}`];
    this.#psql = Bun.spawn([join(postgresPrograms() ?? "", "psql"), "-XqAt", ...form, url], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
      env: {
        ...process.env,
        PGTZ: "UTC",
        PGDATESTYLE: "ISO, MDY",
        PGOPTIONS: `-c statement_timeout=${STATEMENT_MS_MAX}`,
      },
    });
    this.#read = readerOfMarks(this.#psql.stdout);
    this.#readErrors = readerOfMarks(this.#psql.stderr);
  }

  /** Runs a statement. Returns undefined if psql does not respond. */
  async play({ sql, data }: ScriptStatement): Promise<Played | undefined> {
    const body = data === undefined ? "" : `\n${data}\\.`;
    const told = `:SQLSTATE '${CELL}' :ROW_COUNT '${CELL}' :LAST_ERROR_MESSAGE`;
    const marks = `\\echo '${MARK}' ${told} '${MARK}'\n\\warn '${MARK}${MARK}'\n`;
    void this.#psql.stdin.write(`${sql}\n;${body}\n\\r\n${marks}`);
    await this.#psql.stdin.flush();
    const both = Promise.all([this.#read(), this.#readErrors()]);
    const answers = await Promise.race([both, Bun.sleep(ANSWER_MS_MAX)]);
    if (answers === undefined) return undefined;
    const [answer, errors] = answers;
    const played = playedOf(answer, sql);
    const isCopyFrom = /^copy\b(?!\s*\()[\s\S]*?\bfrom\b/i.test(sql);
    return isCopyFrom && played.kind === "rows" ? copiedOf(errors) : played;
  }

  async end(): Promise<void> {
    this.#psql.kill();
    await this.#psql.exited;
  }
}

/**
 * Returns the result of COPY FROM. psql does not set SQLSTATE when it fails. If it succeeds, it
 * reports how many rows it stored, and returns no rows.
 */
function copiedOf(errors: string): Played {
  const message = /^ERROR: +(.*)$/m.exec(errors)?.[1];
  if (message === undefined) return { kind: "rows", rows: [] };
  return { kind: "failure", code: "COPY", message };
}

/** Returns a function that reads psql's output up to the end of the next mark. */
function readerOfMarks(output: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = output.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return async () => {
    for (;;) {
      const begin = text.indexOf(MARK);
      const end = begin < 0 ? -1 : text.indexOf(MARK, begin + 1);
      if (end >= 0) {
        const answer = text.slice(0, end);
        text = text.slice(end + 2);
        return answer;
      }
      const { done, value } = await reader.read();
      if (done) return "";
      text += decoder.decode(value, { stream: true });
    }
  };
}

function playedOf(answer: string, sql: string): Played {
  const [output = "", told = ""] = answer.split(MARK);
  const [state = "", count = "", message = ""] = told.split(CELL).map((part) => part.trim());
  if (state !== "00000") return { kind: "failure", code: state, message };
  const lines = output.replace(/\n$/, "");
  if (/^copy\b/i.test(sql) && output !== "") {
    return { kind: "rows", rows: lines.split("\n").map((line) => [line]) };
  }
  // psql prints nothing for rows without columns.
  if (output === "" && Number(count) > 0) {
    return { kind: "rows", rows: Array.from({ length: Number(count) }, () => []) };
  }
  const rows = Number(count) === 0 ? [] : lines.split(ROW);
  return {
    kind: "rows",
    rows: rows.map((row) => row.split(CELL).map((cell) => (cell === NULL_TEXT ? undefined : cell))),
  };
}
