/**
 * The acceptance examples of the SQL contract, against the real process. The form of the file is
 * explained in its head.
 *
 * What waits for a later stage is marked so, and must say that it is not available: an example
 * that starts to work fails here until its mark is taken away.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type ServerProcess, type SqlAnswer, startServer } from "../support/server_process.ts";

const FILE: string = join(import.meta.dir, "cases/contract_examples.txt");
const PASSWORD = "Correct-horse-9";

interface Example {
  readonly number: string;
  readonly line: number;
  readonly user: string;
  readonly sql: string;
  readonly params: readonly unknown[] | undefined;
  readonly namespace: string | undefined;
  readonly waits: boolean;
  readonly expected: string;
}

/** Wire code, and reason where the code is the common one, of a condition. */
const WIRE: Readonly<Record<string, readonly string[]>> = {
  UNSUPPORTED_FEATURE: ["not_implemented"],
  INVALID_QUERY: ["INVALID_SQL"],
  AMBIGUOUS_COLUMN: ["INVALID_SQL"],
  COLUMN_NOT_FOUND: ["INVALID_SQL"],
  FUNCTION_NOT_FOUND: ["INVALID_SQL"],
  INVALID_VALUE: ["type"],
  VALUE_TOO_LONG: ["type"],
  TYPE_MISMATCH: ["type"],
  UNSUPPORTED_TYPE: ["type"],
  DIMENSION_MISMATCH: ["type"],
  VALUE_OUT_OF_RANGE: ["numeric_range"],
  NOT_NULL_VIOLATION: ["not_null"],
  CHECK_VIOLATION: ["check"],
  DUPLICATE_KEY: ["duplicate_key"],
  CARDINALITY_VIOLATION: ["other"],
  INVALID_OPERATION: [
    "invalid_operation",
    "read_only",
    "system_column",
    "shared_impersonation",
    "managed_by_config",
  ],
  INVALID_TRANSACTION_STATE: [
    "invalid_transaction_state",
    "transaction_open",
    "transaction_required",
  ],
  SERIALIZATION_FAILURE: ["conflict"],
};

function parse(text: string): Example[] {
  const examples: Example[] = [];
  let number = "";
  let params: readonly unknown[] | undefined;
  let namespace: string | undefined;
  let request: { user: string; sql: string; line: number } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.startsWith("## ")) number = line.slice(3);
    else if (line.startsWith("@params ")) params = JSON.parse(line.slice(8)) as unknown[];
    else if (line.startsWith("@namespace ")) namespace = line.slice(11);
    else if (/^\w+> /.test(line)) {
      const [user = "", ...rest] = line.split("> ");
      request = { user, sql: rest.join("> "), line: index + 1 };
    } else if (request !== undefined && line.includes("= ")) {
      if (line.startsWith("later")) {
        request = undefined;
        continue;
      }
      const waits = line.startsWith("waits");
      const expected = line.slice(line.indexOf("= ") + 2);
      examples.push({ ...request, number, params, namespace, waits, expected });
      params = undefined;
      namespace = undefined;
      request = undefined;
    }
  }
  return examples;
}

const examples = parse(await Bun.file(FILE).text());
let server: ServerProcess;
const tokens = new Map<string, string>();
const passwords = new Map([["root", "battery staple 7"]]);

async function run({ namespace, params, sql, user }: Example): Promise<SqlAnswer> {
  let token = tokens.get(user);
  if (token === undefined) {
    token = (await server.login(user, passwords.get(user) ?? PASSWORD)).access_token;
    tokens.set(user, token);
  }
  const answer = await server.sql(sql, {
    token,
    ...(params === undefined ? {} : { params }),
    ...(namespace === undefined ? {} : { namespace }),
  });
  if (sql.startsWith("ALTER USER bob SET PASSWORD") && answer.status === 200) {
    tokens.delete("bob");
    passwords.set("bob", "Correct-horse-8");
  }
  return answer;
}

function checkError({ body }: SqlAnswer, [, condition = "", at]: RegExpExecArray): void {
  const { error } = body;
  if (at !== undefined) expect(error?.statement, JSON.stringify(body)).toBe(Number(at) - 1);
  const allowed = WIRE[condition] ?? [condition, condition.toLowerCase()];
  const found = error?.code === "SQL_EXECUTION_ERROR" ? error.reason : error?.code;
  expect(allowed, JSON.stringify(error)).toContain(found ?? "no error");
}

function checkEntry(entry: SqlAnswer["body"]["results"][number], expected: string): void {
  const text = JSON.stringify(entry);
  let rest = expected;
  const rows = /^(any )?(\[.*\])(?=$|, )/.exec(rest);
  if (rows !== null) {
    const wanted = JSON.parse(rows[2] ?? "[]") as unknown[];
    const found = [...(entry.rows ?? [])];
    const order = (list: readonly unknown[]): unknown[] =>
      rows[1] === undefined ? [...list] : list.map((row) => JSON.stringify(row)).toSorted();
    expect(order(found)).toEqual(order(wanted));
    rest = rest.slice(rows[0].length);
  }
  const columns = /cols ([\w, ]+?)(?=$|, n=|, has)/.exec(rest);
  if (columns !== null) {
    expect(entry.schema?.map(({ name }) => name)).toEqual((columns[1] ?? "").split(", "));
  }
  const count = /n=(\d+)/.exec(rest);
  if (count !== null) expect(entry.row_count, text).toBe(Number(count[1]));
  for (const has of rest.matchAll(/has "((?:[^"\\]|\\.)*)"/g)) {
    expect(text.replaceAll('\\"', '"')).toContain((has[1] ?? "").replaceAll('\\"', '"'));
  }
}

beforeAll(async () => {
  server = await startServer();
  await server.setup();
}, 30_000);

afterAll(() => server.stop());

for (const example of examples) {
  const label = `example ${example.number}, line ${example.line}: ${example.sql.slice(0, 90)}`;
  test(example.waits ? `${label} waits` : label, async () => {
    const answer = await run(example);
    if (example.waits) {
      expect(answer.body.error?.reason, JSON.stringify(answer.body)).toBe("not_implemented");
      return;
    }
    const condition = /^([A-Z_]{5,})(?:@(\d))?$/.exec(example.expected);
    if (condition !== null) {
      checkError(answer, condition);
      return;
    }
    expect(answer.body.error, JSON.stringify(answer.body.error)).toBeUndefined();
    const parts = example.expected.split(" ; ");
    expect(answer.body.results.length).toBeGreaterThanOrEqual(parts.length);
    for (const [i, part] of parts.entries()) {
      const entry = answer.body.results[answer.body.results.length - parts.length + i];
      expect(entry).toBeDefined();
      if (entry !== undefined) checkEntry(entry, part);
    }
  });
}
