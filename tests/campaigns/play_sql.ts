/**
 * Plays SQL scripts, such as PostgreSQL's own regression files, statement by statement on Tidemark
 * and on PostgreSQL, and counts the results that agree.
 *
 *     bun tests/campaigns/play_sql.ts --data src/test/regress src/test/regress/sql/*.sql
 *
 * The scripts are not part of this project: unpack them from PostgreSQL's source. They run in the
 * given order, which should be that of `parallel_schedule`, and each in a separate session. A
 * statement counts as
 *
 *     alike      both sides give the same rows, or both refuse;
 *     omitted    Tidemark refuses the feature as not implemented, or the statement names an object that
 *                an omitted statement should have made or changed;
 *     listed     the difference is on purpose, or PostgreSQL gives the result for another order of
 *                the same rows: docs/internals/differences.md;
 *     refused    Tidemark refuses for another reason;
 *     accepted   only PostgreSQL refuses;
 *     wrong      the rows differ.
 *
 * On Tidemark, a temporary table is replaced by an ordinary one, which is dropped at the end of
 * its script. Until then, an ordinary table of the same name has another name.
 *
 * If an omitted statement should have made one of several objects that a statement drops, Tidemark
 * drops the others.
 *
 * In a transaction, a failure of Tidemark alone is undone, so that the statements after it are
 * compared.
 *
 * Statements about PostgreSQL's own catalog (`pg_class` …) and plans (EXPLAIN, also in functions)
 * are left out.
 */
import { existsSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { flag, readArguments, textOption } from "../../scripts/support/arguments.ts";
import { type Counts, isPlayed, isQuery, Judge, noCounts, type Verdict } from "./play_sql/judge.ts";
import { type Comparison, causeOf } from "./play_sql/listed_differences.ts";
import { OpenOrders } from "./play_sql/open_orders.ts";
import { PlanFunctions } from "./play_sql/plan_functions.ts";
import { haveSameRows, type Played } from "./play_sql/played.ts";
import { openPostgresPlayer } from "./play_sql/postgres_player.ts";
import { type ScriptStatement, statementsOf } from "./play_sql/psql_script.ts";
import { Temporaries } from "./play_sql/temporaries.ts";
import { openTidemarkPlayer } from "./play_sql/tidemark_player.ts";

const { options, words: files } = readArguments(
  {
    data: textOption("<dir>", "the directory whose data/ the scripts copy from", "."),
    show: flag("prints each statement whose results differ"),
  },
  { form: "<file> …", about: "scripts, in the order in which they run", countMin: 1 },
);

const environment = {
  PG_ABS_SRCDIR: resolve(options.data),
  PG_ABS_BUILDDIR: resolve(options.data),
  PG_LIBDIR: "/nonexistent",
  PG_DLSUFFIX: ".so",
};
const judge = new Judge();
const reasons = new Map<string, number>();
const totals = { queries: noCounts(), others: noCounts() };

/** Matches a setting that Tidemark accepts without effect. */
const WITHOUT_EFFECT = /\bextra_float_digits\b/i;

/**
 * Matches the beginning of a statement that drops several objects. If an omitted statement should
 * have made one of them, the others are dropped without it.
 */
const DROP_OF_SEVERAL = /^drop\s+(?:table|view|function|sequence|type)\b(?!\s+if\b)(?=[^;(]*,)/i;

await using postgres = await openPostgresPlayer();
await using tidemark = await openTidemarkPlayer();
const orders = new OpenOrders(postgres);
const plans = new PlanFunctions();
for (const file of files) await playFile(file);
for (const [kind, counts] of Object.entries(totals)) print(kind, counts);
for (const [reason, count] of [...reasons].toSorted(([, a], [, b]) => b - a).slice(0, 60)) {
  process.stdout.write(`${String(count).padStart(6)} ${reason}\n`);
}

async function playFile(file: string): Promise<void> {
  await postgres.begin();
  tidemark.begin();
  const temporaries = new Temporaries(tidemark);
  const queries = noCounts();
  const others = noCounts();
  const statements = statementsOf(readFileSync(file, "utf8"), environment);
  for (const statement of statements) {
    if (!isPlayed(statement.sql) || plans.isAboutPlans(statement.sql)) continue;
    const kind = isQuery(statement.sql) ? "queries" : "others";
    const verdict = await playStatement(statement, { file, temporaries });
    (kind === "queries" ? queries : others)[verdict] += 1;
    totals[kind][verdict] += 1;
  }
  await temporaries.end();
  const left = await postgres.leftObjects();
  judge.endScript({ ...left, names: left.names.union(await tidemark.leftNames()) });
  print(`${basename(file)} queries`, queries);
  print(`${basename(file)} others`, others);
}

async function playStatement(
  statement: ScriptStatement,
  { file, temporaries }: { readonly file: string; readonly temporaries: Temporaries },
): Promise<Verdict> {
  const { sql } = statement;
  const settle = await tidemark.guard(sql);
  await temporaries.before(sql);
  const changed = { ...statement, sql: temporaries.renamed(sql) };
  let ours = await tidemark.play(forTidemark(changed));
  await temporaries.after(sql, ours);
  // If only one side accepts a setting, it would change the form of that side's later results.
  if (/^set\b/i.test(sql) && (ours.kind === "failure" || WITHOUT_EFFECT.test(sql))) {
    judge.omitSetting(sql);
    await settle(ours, { kind: "rows", rows: [] });
    return "omitted";
  }
  await orders.before(sql);
  const theirs = await postgres.play(statement);
  let last = ours;
  if (isQuery(sql) && ours.kind === "rows" && theirs.kind === "rows" && ours.rows.length > 0) {
    if (!haveSameRows(ours.rows, theirs.rows)) {
      last = await tidemark.playAsText(sql);
      if (last.kind === "rows") ours = last;
    }
  }
  await settle(last, theirs);
  const known = judge.judge(sql, ours, theirs);
  if (known === "omitted" && ours.kind === "failure" && theirs.kind === "rows") {
    const others = changed.sql.replace(DROP_OF_SEVERAL, "$& IF EXISTS");
    if (others !== changed.sql) await tidemark.play({ ...changed, sql: others });
  }
  if (known === "alike") return known;
  const cause =
    known === "listed"
      ? causeOf({ sql, ours, theirs })
      : known === "wrong"
        ? await orderCause({ sql, ours, theirs })
        : undefined;
  const verdict = cause === undefined ? known : "listed";
  const told =
    cause ?? (ours.kind === "failure" ? `${ours.code}: ${generalised(ours.message)}` : "");
  const reason = `${verdict}${told === "" ? "" : ` ${told}`}`;
  reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  if (options.show) {
    process.stdout.write(
      `-- ${basename(file)}:${statement.line} ${verdict}\n${sql.slice(0, 600)}\n` +
        `   tidemark: ${shown(ours)}\n   postgres: ${shown(theirs)}\n`,
    );
  }
  return verdict;
}

/**
 * Returns the cause of a difference that follows from the order of rows; undefined if the result is
 * wrong.
 */
async function orderCause(comparison: Comparison): Promise<string | undefined> {
  const { sql } = comparison;
  const cursor = orders.cursorOf(sql);
  if (cursor !== undefined) {
    const cause = causeOf({ ...comparison, declared: cursor.rows });
    // The current row of the cursor may differ from here on.
    if (cause !== undefined) judge.omitCursor(cursor.name);
    return cause;
  }
  if (!isQuery(sql)) return undefined;
  for await (const other of orders.resultsOf(sql)) {
    const cause = causeOf({ ...comparison, other });
    if (cause !== undefined) return cause;
  }
  return undefined;
}

/**
 * Returns a statement in a form that Tidemark supports: a temporary table becomes an ordinary
 * table, and COPY from a file on the server becomes COPY from the request.
 */
function forTidemark(statement: ScriptStatement): ScriptStatement {
  const temporary = /^(create\s+)(?:local\s+|global\s+)?temp(?:orary)?\s+/i.exec(statement.sql);
  if (temporary !== null) {
    const [head, before = ""] = temporary;
    return { ...statement, sql: before + statement.sql.slice(head.length) };
  }
  const found = /^(copy\b[\s\S]*?\bfrom\s+)'([^']+)'/i.exec(statement.sql);
  if (found === null) return statement;
  const [head, before = "", path = ""] = found;
  if (!existsSync(path)) return statement;
  const sql = `${before}STDIN${statement.sql.slice(head.length)}`;
  return { ...statement, sql, data: readFileSync(path, "utf8") };
}

function generalised(message: string): string {
  return message
    .replaceAll(/"[^"]*"|'[^']*'/g, "…")
    .replaceAll(/\d+/g, "n")
    .slice(0, 110);
}

function shown(played: Played): string {
  if (played.kind === "failure") return `${played.code}: ${played.message.slice(0, 300)}`;
  const rows = played.rows.slice(0, 6).map((row) => row.map((cell) => cell ?? "NULL").join(" | "));
  return `${played.rows.length} row(s)${rows.map((row) => `\n      ${row.slice(0, 200)}`).join("")}`;
}

function print(name: string, counts: Counts): void {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (all === 0) return;
  const share = (part: number, whole: number): string =>
    whole === 0 ? "-" : `${((100 * part) / whole).toFixed(1)} %`;
  process.stdout.write(
    `${name}: ${all}, alike ${counts.alike} (${share(counts.alike, all)} of all, ` +
      `${share(counts.alike, all - counts.omitted)} without omissions), omitted ${counts.omitted}, ` +
      `listed ${counts.listed}, refused ${counts.refused}, accepted ${counts.accepted}, wrong ${counts.wrong}\n`,
  );
}
