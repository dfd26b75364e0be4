/**
 * Verifies that the Grafana dashboard matches the server's metrics. Each metric and label in a
 * dashboard query must exist in the `/metrics` of a server with an archive, and nearly all metrics
 * must be on the dashboard.
 */
import { beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startReadyServer } from "../support/server_process.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Board {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string }[] };
}

const board = (await Bun.file(join(import.meta.dir, "../../deploy/grafana.json")).json()) as Board;
const queries = board.panels.flatMap(({ targets = [] }) => targets);

/** Metrics used only by an alert or a version comparison, so that no graph shows them. */
const NOT_SHOWN = new Set([
  "tidemark_accept_pauses_total",
  "tidemark_archive_failing",
  "tidemark_archive_lost_files_total",
  "tidemark_archive_waiting_files",
]);

/** The labels of each metric, including `instance`, which Prometheus adds. */
const labelsByMetric = new Map<string, Set<string>>();

beforeAll(async () => {
  const text = await metricsText();
  for (const [, name = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = labelsByMetric.get(name) ?? new Set(["instance"]);
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
    labelsByMetric.set(name, known);
  }
  // A counter with a type label has no line before the first event of that type.
  for (const [, name = ""] of text.matchAll(/^# TYPE (\w+) counter$/gm)) {
    if (!labelsByMetric.has(name)) labelsByMetric.set(name, new Set(["instance"]));
  }
});

async function metricsText(): Promise<string> {
  const archive = mkdtempSync(join(tmpdir(), "tidemark-board-"));
  try {
    await using server = await startReadyServer({ config: { storage: { archive_path: archive } } });
    const answer = await server.get("/metrics", { Authorization: `Bearer ${server.token}` });
    expect(answer.status).toBe(200);
    return await answer.text();
  } finally {
    rmSync(archive, { recursive: true });
  }
}

const metricsIn = (expression: string): string[] =>
  [...expression.matchAll(/\b((?:tidemark|process)_\w+)/g)].map(([, name = ""]) => name);

test("each metric on the dashboard exists, with the labels that the query names", () => {
  expect(queries.length).toBeGreaterThan(20);
  for (const { expr, legendFormat } of queries) {
    const metrics = metricsIn(expr);
    expect([expr, metrics.length > 0]).toEqual([expr, true]);
    const used = [
      ...[...expr.matchAll(/\b(\w+)(?:=~|!=|=)"/g)].map(([, label = ""]) => label),
      ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/, */)),
      ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label),
    ];
    for (const metric of metrics) {
      const labels = labelsByMetric.get(metric);
      expect([metric, labels !== undefined]).toEqual([metric, true]);
      expect([expr, used.filter((label) => labels?.has(label) !== true)]).toEqual([expr, []]);
    }
  }
});

test("the dashboard shows every metric except those for alerts", () => {
  const shown = new Set(queries.flatMap(({ expr }) => metricsIn(expr)));
  const family = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, "");
  const families = new Set([...shown].map(family));
  const missing = [...labelsByMetric.keys()].filter((name) => !families.has(family(name)));
  expect(missing.filter((name) => !NOT_SHOWN.has(name) && name !== "tidemark_build_info")).toEqual(
    [],
  );
});

test("panels have unique titles and ids, do not overlap, and use known variables", () => {
  const cells = new Set<string>();
  for (const { title, gridPos } of board.panels) {
    expect(title).not.toBe("");
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, cells.has(`${x},${y}`), x < 24]).toEqual([title, false, true]);
        cells.add(`${x},${y}`);
      }
    }
  }
  expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
  const known = new Set([
    ...board.templating.list.map(({ name }) => name),
    "__rate_interval",
    "__all",
  ]);
  const used = [...JSON.stringify(board).matchAll(/\$\{?(\w+)/g)].map(([, name = ""]) => name);
  expect(used.filter((name) => !known.has(name))).toEqual([]);
});
