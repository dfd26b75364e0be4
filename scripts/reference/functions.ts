/**
 * Writes `docs/reference/functions.md`: every function with its arguments, taken from the
 * registry, and an example whose result the engine computes during the generation. The
 * descriptions and examples are in `functions.txt`. A function that `functions.txt` does not
 * describe is an error, and so is a description of an unknown function.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { aggregateNames } from "../../src/sql/functions/aggregate/aggregates.ts";
import type {
  Overload,
  ParameterType,
  ScalarFunction,
} from "../../src/sql/functions/base/function.ts";
import { scalarFunctions } from "../../src/sql/functions/registry.ts";
import { tableFunctionNames } from "../../src/sql/functions/table/table_functions.ts";
import { windowFunctionNames } from "../../src/sql/functions/window_functions.ts";
import { type DataType, isRangeType, typeName } from "../../src/types/mod.ts";
import { TestEngine } from "../../tests/support/sql_engine.ts";
import { aggregateSignatures, windowSignature } from "./call_signatures.ts";
import { code, GENERATED, markdownTable } from "./markdown.ts";

/** The table of three rows that the examples for aggregates and window functions read. */
const ROWS = "(VALUES (1, 2, 'a'), (2, 4, 'b'), (3, 7, 'b')) AS t (n, m, s)";

interface Entry {
  readonly names: readonly string[];
  readonly example: string;
  readonly meaning: string;
}

interface Group {
  readonly title: string;
  readonly entries: readonly Entry[];
}

/**
 * Functions that turn an example into a complete statement, keyed by the group of the example.
 * They exist only for groups whose examples are not queries.
 */
const STATEMENT_OF: Readonly<Record<string, (example: string) => string>> = {
  "Advisory locks": (example) => `BEGIN; SELECT (${example})::text; COMMIT`,
  Aggregates: (example) => `SELECT (${example})::text FROM ${ROWS}`,
  "Window functions": (example) => `SELECT (${example})::text FROM ${ROWS} ORDER BY n`,
  "Table functions": (example) => `SELECT * FROM ${example}`,
};

const TYPE_NAMES: Readonly<Partial<Record<DataType["kind"], string>>> = {
  bytes: "BYTES",
  datetime: "TIMESTAMPTZ",
  double: "DOUBLE",
  embedding: "EMBEDDING",
  float: "REAL",
};

const FAMILY_NAMES: Readonly<Record<Extract<ParameterType, string>, string>> = {
  any: "any",
  array: "array",
  element: "element",
  integer: "whole number",
  json: "JSON",
  jsonText: "JSON",
  exact: "NUMERIC",
  multirange: "multirange",
  numeric: "number",
  range: "range",
  same: "any",
};

export async function functionsPage(): Promise<string> {
  const groups = readGroups();
  checkNames(groups);
  const scalars = new Map([...scalarFunctions()].map((scalar) => [scalar.name, scalar]));
  await using engine = await TestEngine.open({ clock: systemClock });
  await engine.run("CREATE NAMESPACE app; CREATE SHARED TABLE app.t (id SERIAL PRIMARY KEY)");
  await engine.run("INSERT INTO app.t VALUES (1)");
  await engine.run("CREATE TYPE app.mood AS ENUM ('sad', 'ok', 'happy')");
  await engine.run("CREATE TYPE app.place AS (street TEXT, city TEXT)");
  const parts: string[] = [];
  for (const { entries, title } of groups) {
    const rows: string[][] = [];
    for (const entry of entries) {
      const known = entry.names.flatMap((name) => scalars.get(name) ?? []);
      const result = await resultOf(engine, { title, entry, known });
      rows.push([signatures(title, entry, known), entry.meaning, code(entry.example), result]);
    }
    const table = markdownTable(["function", "meaning", "example", "result"], rows);
    parts.push(`## ${title}\n${introduction(title)}\n${table}`);
  }
  return `${GENERATED}

# Functions

Names are the same in either case. Except where the text says otherwise, a function returns NULL if an
argument is NULL. An argument in square brackets may be left out. Results are shown as text; a function
whose result changes from call to call has none here.

${parts.join("\n\n")}
`;
}

function introduction(title: string): string {
  if (title !== "Aggregates" && title !== "Window functions") return "";
  return `\nThe examples read three rows: \`${ROWS}\`.\n`;
}

function readGroups(): readonly Group[] {
  const text = readFileSync(join(import.meta.dir, "functions.txt"), "utf8");
  return text
    .split(/^# /m)
    .slice(1)
    .map((group) => {
      const [title = "", ...lines] = group.split("\n");
      return { title, entries: lines.filter((line) => line !== "").map(entryFrom) };
    });
}

function entryFrom(line: string): Entry {
  const [names, example, meaning, ...rest] = line.split(" | ");
  if (names === undefined || example === undefined || meaning === undefined || rest.length > 0) {
    throw new Error(`Cannot read "${line}": it must be names | example | meaning`);
  }
  return { names: names.split(", "), example, meaning };
}

/**
 * Checks that the descriptions in `functions.txt` match the existing functions.
 * @throws {Error} If a function has no description, or a description has no function.
 */
function checkNames(groups: readonly Group[]): void {
  const described = groups.flatMap(({ entries }) => entries.flatMap(({ names }) => names));
  const known = [
    ...[...scalarFunctions()].map(({ name }) => name),
    ...aggregateNames(),
    ...windowFunctionNames(),
    ...tableFunctionNames(),
  ];
  const missing = known.filter((name) => !described.includes(name));
  const surplus = described.filter(
    (name, at) => !known.includes(name) || described.indexOf(name) < at,
  );
  if (missing.length + surplus.length === 0) return;
  throw new Error(`functions.txt lacks ${missing.join(", ")}; surplus: ${surplus.join(", ")}`);
}

async function resultOf(
  engine: TestEngine,
  { entry, known, title }: { entry: Entry; known: readonly ScalarFunction[]; title: string },
): Promise<string> {
  const { example, names } = entry;
  const plain = (text: string): string =>
    example.includes("_seq") ? `SELECT ${text} FROM app.t` : `SELECT (${text})::text`;
  const statement = (STATEMENT_OF[title] ?? plain)(example);
  let rows: readonly (readonly unknown[])[];
  try {
    rows = await engine.rows(statement);
  } catch (error) {
    throw new Error(`Cannot run the example of ${names.join(", ")}: ${statement}`, {
      cause: error,
    });
  }
  const isFixed = known.every(({ overloads }) =>
    overloads.every(({ volatility }) => volatility === "immutable"),
  );
  if (!isFixed || example.includes("_seq")) return "";
  return rows.map((row) => code(row.map(cellText).join(", "))).join("<br>");
}

function cellText(cell: unknown): string {
  if (cell === null) return "NULL";
  return typeof cell === "string" ? cell : JSON.stringify(cell);
}

function signatures(
  title: string,
  { example, names }: Entry,
  known: readonly ScalarFunction[],
): string {
  const [first = "", ...others] = names;
  const scalars = known[0]?.overloads.map((each) => signature(first, each, example));
  const lines = callLines(title, first) ?? scalars;
  if (lines === undefined) return names.map(code).join(", ");
  const shown = others.flatMap((name) => {
    const own = callLines(title, name) ?? [];
    const isAlike = own.every((line, at) => line === lines[at]?.replace(first, name));
    return isAlike ? `also ${code(name)}` : own.map(code);
  });
  return [...new Set(lines.map(code)), ...shown].join("<br>");
}

/** Returns the signatures of an aggregate or a window function; undefined for other functions. */
function callLines(title: string, name: string): readonly string[] | undefined {
  if (title === "Aggregates") {
    return aggregateSignatures(name, (type) =>
      isRangeType(type) ? type.kind.toUpperCase() : nameOf(type),
    );
  }
  return title === "Window functions" ? [windowSignature(name, nameOf)] : undefined;
}

function signature(
  name: string,
  { optionalCount = 0, parameters, result, variadic }: Overload,
  example: string,
): string {
  const arrow = typeof result === "function" ? "" : ` → ${nameOf(result)}`;
  if (parameters.length === 0 && !example.includes("(")) return `${name}${arrow}`;
  const needed = parameters.length - optionalCount;
  const shown = parameters.map((parameter, at) => {
    const text = `${at === 0 ? "" : ", "}${nameOf(parameter)}`;
    return at < needed ? text : ` [${text.trim()}]`;
  });
  const rest = parameters.length === 0 && variadic !== undefined ? nameOf(variadic) : "";
  const more = variadic === undefined ? "" : `${rest}, …`;
  return `${name}(${shown.join("").trim()}${more})${arrow}`;
}

function nameOf(type: ParameterType): string {
  if (typeof type === "string") return FAMILY_NAMES[type];
  if (type.kind === "array") return `${nameOf(type.element)}[]`;
  if (isRangeType(type)) return typeName(type).toUpperCase();
  if (type.kind === "json") return type.binary ? "JSONB" : "JSON";
  return TYPE_NAMES[type.kind] ?? type.kind.toUpperCase();
}
