/**
 * Merges a table of measurements into the table of an earlier run. Jobs that were measured again
 * replace their earlier rows. The other rows stay and are marked, because ratios from different
 * runs are less comparable.
 */

/** Marks the name of a job that was not measured again. */
export const EARLIER = " °";

const JOB = "job";
const LAST = "target";

type Row = ReadonlyMap<string, string>;

/**
 * Merges two tables printed by `tableOf`. The result has every column that occurs in either table.
 */
export function mergedTable(earlier: string, latest: string): string {
  const [old, now] = [rowsOf(earlier), rowsOf(latest)];
  const measured = new Map(now.map((row) => [jobOf(row), row]));
  const merged: Row[] = [];
  for (const row of old) {
    const again = measured.get(jobOf(row));
    measured.delete(jobOf(row));
    merged.push(again ?? new Map([...row, [JOB, jobOf(row) + EARLIER]]));
  }
  merged.push(...measured.values());
  const names = new Set(merged.flatMap((row) => [...row.keys()]));
  names.delete(LAST);
  const columns = [...names, LAST];
  const rule = columns.map((_, index) => (index < 2 ? "---" : "---:"));
  const cells = merged.map((row) => columns.map((column) => row.get(column) ?? ""));
  // Each ratio column follows the column of its system, so its heading need not name the system.
  const head = columns.map((column) => column.replace(/^ratio to .*/, "ratio"));
  return [head, rule, ...cells].map((line) => `| ${line.join(" | ")} |`).join("\n");
}

function rowsOf(table: string): Row[] {
  const [head = [], , ...rows] = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .slice(1, -1)
        .split("|")
        .map((cell) => cell.trim()),
    );
  const columns = head.map((name, i) =>
    name === "ratio" ? `ratio to ${head[i - 1] ?? ""}` : name,
  );
  return rows.map((cells) => new Map(columns.map((column, i) => [column, cells[i] ?? ""])));
}

function jobOf(row: Row): string {
  const job = row.get(JOB) ?? "";
  return job.endsWith(EARLIER) ? job.slice(0, -EARLIER.length) : job;
}
