/**
 * Runs many statements in PostgreSQL through `psql`, and returns each result in Tidemark's wire
 * form.
 */
import { spawn } from "node:child_process";
import type { Answer, Column } from "./answer.ts";

const FIELD = "\u001f";
const ROW = "\u001e";
const NULL = "\u001d";
const MARK = "\u001c";

/** The types whose values are compared as numbers rather than as text. */
const NUMBERS: ReadonlySet<string> = new Set(["numeric", "real", "double precision"]);

const DAY_MS = 86_400_000;

/** Runs statements one after another on a single connection. @throws If the client cannot run. */
export async function askPostgres(
  url: string,
  programs: string,
  statements: readonly string[],
): Promise<Answer[]> {
  const script = statements.map((sql, i) => {
    const describe = /^\s*(?:SELECT|WITH|VALUES|TABLE|\()/i.test(sql) || /\bRETURNING\b/i.test(sql);
    const description = describe ? `${sql} \\gdesc\n` : "";
    return `\\echo ${MARK}${i}\n${description}\\echo ${MARK}\n${sql};\n\\echo ${MARK} :ROW_COUNT\n`;
  });
  const settings =
    "SET timezone='UTC';\nSET client_min_messages=error;\nSET extra_float_digits=1;\n\\set VERBOSITY verbose\n";
  const output = await run(
    `${programs}/psql`,
    [url, "-XqAt", "-F", FIELD, "-R", ROW, "-P", `null=${NULL}`],
    settings + script.join(""),
  );
  const parts = output.split(new RegExp(`${MARK}(\\d+)\\n`));
  return statements.map((_, i) => {
    const at = parts.indexOf(String(i), 1);
    const [described = "", rest = ""] = (parts[at + 1] ?? "").split(`${MARK}\n`);
    const [result = "", count = "0"] = rest.split(`${MARK} `);
    return answerFrom(described, result, Number(count));
  });
}

function answerFrom(described: string, result: string, rowCount: number): Answer {
  const [, state, message = ""] = /^ERROR: {2}(\w{5}): (.*)$/m.exec(result) ?? [];
  if (state !== undefined) return { kind: "failure", state, message };
  const types = described
    .trimEnd()
    .split(ROW)
    // The client prints only a notice for a statement without result columns.
    .filter((line) => line.includes(FIELD))
    .map((line) => line.split(FIELD)[1] ?? "");
  const hasRows = types.length > 0 && rowCount > 0;
  const lines = hasRows ? result.replace(/\n$/, "").split(ROW) : [];
  const rows = lines.map((line) => line.split(FIELD));
  const columns = types.map((type, i): Column => columnOf(type, rows, i));
  return {
    kind: "rows",
    columns,
    rows: rows.map((row) =>
      row.map((cell, i) => (cell === NULL ? null : wireForm(cell, types[i] ?? ""))),
    ),
  };
}

function columnOf(type: string, rows: readonly (readonly string[])[], position: number): Column {
  const [base = ""] = type.split("(");
  if (NUMBERS.has(base)) return "N";
  const isPlain = rows.every((row) =>
    /^[\x20-\x7e]*$/.test((row[position] ?? "").replace(NULL, "")),
  );
  return isPlain ? "T" : "U";
}

/**
 * Converts a value that PostgreSQL printed to the form in which Tidemark sends a value of this
 * type.
 */
function wireForm(text: string, type: string): string {
  const [base = ""] = type.split("(");
  if (/^time\b.*with time zone$/.test(type)) return text;
  switch (base.replace(/ with(?:out)? time zone$/, "").trim()) {
    case "boolean":
      return text === "t" ? "true" : "false";
    case "date":
      return String(Date.parse(`${text}T00:00:00Z`) / DAY_MS);
    case "timestamp":
      return micros(text);
    case "time":
      return micros(`1970-01-01 ${text}`);
    case "bytea":
      return JSON.stringify([...Buffer.from(text.slice(2), "hex")]);
    default:
      return text;
  }
}

function micros(text: string): string {
  const [, seconds = "", digits = ""] = /^([\d-]+ [\d:]+)(?:\.(\d+))?(?:\+00)?$/.exec(text) ?? [];
  const wholeMs = Date.parse(`${seconds.replace(" ", "T")}Z`);
  return String(BigInt(wholeMs) * 1000n + BigInt(digits.padEnd(6, "0") || "0"));
}

async function run(command: string, parameters: readonly string[], input: string): Promise<string> {
  // Errors and rows share a pipe, because only then do they keep their relative order.
  const both = ["-c", 'exec "$0" "$@" 2>&1', command, ...parameters];
  const child = spawn("sh", both, { stdio: ["pipe", "pipe", "inherit"] });
  const decoder = new TextDecoder();
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += decoder.decode(chunk, { stream: true });
  });
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0) throw new Error(`Cannot ask PostgreSQL: its client ended with ${code}`);
  return output;
}
