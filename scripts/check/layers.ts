/**
 * Checks that imports under `src` point down, as drawn in docs/internals/architecture.md, and that
 * tests enter `src` only through `mod.ts` files.
 *
 * Imports are read as text: type imports also count, because a reader needs the other file for
 * them as well. Reading text also avoids a compiler interface that a new TypeScript version could
 * break. The formatter puts the module name of an import on the same line as `from`.
 *
 * An allowance that no file uses is also a fault, so that the next such import is a decision
 * rather than an accident. Sub-folders of a layer must not form an import cycle, directly or
 * through others. The table of sub-folders in docs/internals/architecture.md must list each
 * sub-folder above those that it imports.
 */
import { posix } from "node:path";
import { Glob } from "bun";
import { readOptions } from "../support/arguments.ts";

/** The folders that each folder of `src` may import. Every folder may import itself and `base`. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  base: [],
  types: ["base"],
  protocol: ["base"],
  storage: ["base", "types"],
  catalog: ["base", "types"],
  auth: ["base", "protocol", "catalog"],
  config: ["base", "auth"],
  threads: ["base", "storage"],
  sql: ["base", "types", "protocol", "catalog", "storage", "auth", "threads"],
  live: ["base", "types", "protocol", "catalog", "storage", "auth", "sql"],
  topics: ["base", "types", "catalog", "storage", "sql"],
  backup: ["base", "types", "catalog", "storage", "threads", "sql"],
  maintenance: ["base", "catalog", "storage", "auth", "sql", "backup"],
  server: ["base", "types", "protocol", "catalog", "auth", "sql", "live", "topics"],
  client: ["protocol"],
};

/**
 * The packages and runtime modules that only some files may import. Each maps to the path prefix
 * of the files that may import it.
 */
const HOMES: Readonly<Record<string, string>> = {
  "bun:sqlite": "src/catalog/",
  "node:fs": "src/base/",
  "node:fs/promises": "src/base/",
  jose: "src/auth/",
  msgpackr: "src/server/",
  "smol-toml": "src/config/",
};

/**
 * The entry points other than `mod.ts`, each with the folders that may import it. All other
 * folders either have no use for its exports, or could bypass `mod.ts` through it. A file directly
 * in `src` may import any of these entry points.
 */
const SECOND_DOORS: Readonly<Record<string, readonly string[]>> = {
  "src/storage/files.ts": ["backup", "maintenance"],
};

/**
 * The folders whose code also runs in browsers and other runtimes. They must not use any API of
 * Bun or Node.
 */
const PORTABLE: ReadonlySet<string> = new Set(["protocol", "client"]);

const IMPORTED = /\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;

/** Lists the imports of a file that break the rules, as "<module>: <rule>". */
export function layerFaultsIn(path: string, source: string): string[] {
  const faults: string[] = [];
  for (const module of modulesIn(source)) {
    const fault = module.startsWith(".")
      ? faultOfFile(path, posix.join(posix.dirname(path), module))
      : faultOfPackage(path, module);
    if (fault !== undefined) faults.push(`"${module}" ${fault}`);
  }
  return faults;
}

/**
 * Lists the folders of `src` from which a file imports, each as "<importing folder> → <imported
 * folder>".
 */
export function foldersUsedIn(path: string, source: string): string[] {
  const from = folderOf(path);
  if (from === undefined || !path.startsWith("src/")) return [];
  return modulesIn(source).flatMap((module) => {
    const to = module.startsWith(".")
      ? folderOf(posix.join(posix.dirname(path), module))
      : undefined;
    return to === undefined || to === from ? [] : [`${from} → ${to}`];
  });
}

/**
 * The import cycles that are allowed: expressions contain queries, and queries contain
 * expressions.
 */
const KNOWN_CYCLES: readonly (readonly string[])[] = [
  ["src/sql/bind/expression", "src/sql/bind/query"],
];

/**
 * The sub-folders of each layer, mapped to the sub-folders from which they import. Imports by
 * `mod.ts` files do not count.
 */
export type FolderGraph = Map<string, Set<string>>;

/** Records from which sub-folders of its own layer a file imports. */
export function noteFolders(graph: FolderGraph, path: string, source: string): void {
  if (folderOf(path) === undefined || isDoor(path)) return;
  const from = posix.dirname(path);
  for (const module of modulesIn(source)) {
    const target = posix.join(from, module);
    const to = posix.dirname(target);
    if (!module.startsWith(".") || to === from || folderOf(target) !== folderOf(path)) continue;
    graph.set(from, (graph.get(from) ?? new Set()).add(to));
  }
}

/** Lists the import cycles between sub-folders that are not in KNOWN_CYCLES. */
export function cyclesIn(graph: FolderGraph): string[] {
  const cycles = new Set<string>();
  for (const folder of graph.keys()) {
    const reached = foldersBehind(graph, folder);
    if (!reached.has(folder)) continue;
    const cycle = [...reached]
      .filter((other) => foldersBehind(graph, other).has(folder))
      .toSorted();
    cycles.add(cycle.join(" ↔ "));
  }
  const known = new Set(KNOWN_CYCLES.map((folders) => folders.join(" ↔ ")));
  return [
    ...[...cycles].filter((cycle) => !known.has(cycle)),
    ...[...known].filter((cycle) => !cycles.has(cycle)).map((cycle) => `${cycle}: no longer`),
  ];
}

function foldersBehind(graph: FolderGraph, folder: string): Set<string> {
  const reached = new Set<string>();
  const open = [folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const other of graph.get(next) ?? []) {
      if (reached.has(other)) continue;
      reached.add(other);
      open.push(other);
    }
  }
  return reached;
}

/** The page whose table lists the sub-folders of the layers. */
const TOUR = "docs/internals/architecture.md";

/**
 * Returns the sub-folders in the table of {@linkcode TOUR}, from top to bottom and from left to
 * right, such as "live/scheduler". "live" means the files directly in `src/live`. Only the first
 * name in a row includes the layer. The other names in the row belong to the same layer.
 * @param tour The Markdown of the page.
 */
export function folderOrderIn(tour: string): string[] {
  const [, table = ""] = tour.split("\n| folder | contents |\n|---|---|\n");
  const [rows = ""] = table.split("\n\n");
  return rows.split("\n").flatMap((row) => {
    const [, cell = ""] = row.split("|");
    const names = Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = ""]) => name);
    const layer = names[0]?.split("/")[0];
    return names.map((name) => (name.includes("/") ? name.replace(/\/$/, "") : `${layer}/${name}`));
  });
}

/**
 * Lists imports that contradict the documented order of sub-folders, and sub-folders that are
 * missing from the imports or from the documented order.
 *
 * @param order The result of {@linkcode folderOrderIn}.
 */
export function orderFaultsIn(graph: FolderGraph, order: readonly string[]): string[] {
  const faults = new Set<string>();
  const seen = new Set<string>();
  for (const [folder, imported] of graph) {
    if (!folder.startsWith("src/")) continue;
    const from = subFolderOf(folder);
    for (const target of imported) {
      const to = subFolderOf(target);
      seen.add(from).add(to);
      if (order.includes(from) && order.includes(to) && order.indexOf(from) > order.indexOf(to)) {
        faults.add(`${from} imports ${to}, which the table lists above it`);
      }
    }
  }
  return [
    ...faults,
    ...[...seen].filter((place) => !order.includes(place)).map((place) => `${place} is missing`),
    ...order.filter((place) => !seen.has(place)).map((place) => `${place} is in no import`),
  ];
}

/** Returns the layer and the first sub-folder of a path: "sql/bind" for `src/sql/bind/query`. */
function subFolderOf(folder: string): string {
  return folder.split("/").slice(1, 3).join("/");
}

/**
 * Lists the allowed imports that no file uses.
 * @param used The combined results of {@linkcode foldersUsedIn} for all files.
 */
export function unusedAllowances(used: ReadonlySet<string>): string[] {
  return Object.entries(BELOW).flatMap(([from, below]) =>
    below.map((to) => `${from} → ${to}`).filter((pair) => !used.has(pair)),
  );
}

/**
 * The modules of `src` that the admin page may import, which are those that any other client uses.
 */
const UI_DOORS: ReadonlySet<string> = new Set(["src/client/mod.ts", "src/protocol/mod.ts"]);

/** Lists the imports that a file of the admin page must not contain. */
export function uiFaultsIn(path: string, source: string): string[] {
  const faults: string[] = [];
  for (const module of modulesIn(source)) {
    const target = posix.join(posix.dirname(path), module);
    if (!module.startsWith(".") || target.startsWith("ui/") || UI_DOORS.has(target)) continue;
    faults.push(`"${module}" is neither part of the page nor the mod.ts of client or protocol`);
  }
  return faults;
}

/** The test file of this check. It quotes forbidden imports, so the check must not read it. */
const PLANTED = "tests/scripts/check_test.ts";

/**
 * Lists the imports that a test must not contain. A test uses the `mod.ts` files of `src`. It may
 * import an inner file only from its own sub-folder: `tests/sql/parse/text/lexer_test.ts` and
 * `tests/sql/parse_test.ts` from `src/sql/parse`, and the tests directly in `tests/auth` from
 * `src/auth`. The parts of other sub-folders that a test needs are provided in `tests/support`.
 */
export function testFaultsIn(path: string, source: string): string[] {
  if (path === PLANTED || path.startsWith("tests/support/")) return [];
  const faults: string[] = [];
  for (const module of modulesIn(source)) {
    const target = posix.join(posix.dirname(path), module);
    const to = folderOf(target);
    if (!module.startsWith(".") || !target.startsWith("src/") || to === undefined) continue;
    if (to === "base" || isDoor(target)) continue;
    const folder = placeOf(target);
    if (folder === placeOf(path) || folder === withoutTop(path).replace(/_test\.ts$/, "")) continue;
    faults.push(
      `"${module}" is in another folder: use src/${to}/mod.ts, or make it in tests/support`,
    );
  }
  return faults;
}

/**
 * Returns the layer and sub-folder of a file, such as "sql/parse", or only the layer, such as
 * "auth", if there is no sub-folder.
 */
function placeOf(path: string): string {
  return posix.dirname(withoutTop(path)).split("/").slice(0, 2).join("/");
}

function withoutTop(path: string): string {
  return path.slice(path.indexOf("/") + 1);
}

/** Lists the modules that a file imports, by any form of import. */
function modulesIn(source: string): string[] {
  return Array.from(
    source.matchAll(IMPORTED),
    ([, named, bare, dynamic]) => named ?? bare ?? dynamic ?? "",
  );
}

function faultOfPackage(path: string, module: string): string | undefined {
  const home = HOMES[module];
  if (home !== undefined) return path.startsWith(home) ? undefined : `is used in ${home} only`;
  if (!/^(?:bun$|bun:|node:)/.test(module)) return "is not an agreed package";
  const folder = folderOf(path);
  const isPortable = folder !== undefined && PORTABLE.has(folder);
  return isPortable ? `ties ${folder} to one runtime` : undefined;
}

function faultOfFile(path: string, target: string): string | undefined {
  const from = folderOf(path);
  // Every file may import package.json, because only package.json defines the version.
  if (target === "package.json" && from === undefined) return undefined;
  if (!target.startsWith("src/")) return "is outside src";
  const to = folderOf(target);
  // A file directly in `src` connects the layers, so it may import every layer through its
  // `mod.ts`.
  if (to === undefined) return from === undefined ? undefined : "is above every folder";
  if (from === to) return isDoor(target) ? "is the folder's own mod.ts" : undefined;
  if (from !== undefined && BELOW[from]?.includes(to) !== true) return `is not below ${from}`;
  if (from !== undefined && SECOND_DOORS[target]?.includes(from) === false) {
    return `is not an entry point for ${from}`;
  }
  return to === "base" || isDoor(target) ? undefined : `bypasses src/${to}/mod.ts`;
}

/**
 * Returns the top-level folder of `src` that contains a file, at any depth; undefined for a file
 * directly in `src`.
 */
function folderOf(path: string): string | undefined {
  const [, folder, inside] = path.split("/");
  return inside === undefined ? undefined : folder;
}

/**
 * Returns whether a file is an entry point: the `mod.ts` of a top-level folder. A `mod.ts` further
 * down is an ordinary file.
 */
function isDoor(path: string): boolean {
  return /^src\/[^/]+\/mod\.ts$/.test(path) || Object.hasOwn(SECOND_DOORS, path);
}

if (import.meta.main) {
  readOptions({});
  const used = new Set<string>();
  const folders: FolderGraph = new Map();
  for (const [pattern, faultsIn] of [
    ["src/**/*.ts", layerFaultsIn],
    ["ui/src/**/*.{ts,tsx}", uiFaultsIn],
    ["tests/**/*.{ts,tsx}", testFaultsIn],
  ] as const) {
    let fileCount = 0;
    for await (const path of new Glob(pattern).scan()) {
      fileCount += 1;
      const source = await Bun.file(path).text();
      for (const pair of foldersUsedIn(path, source)) used.add(pair);
      noteFolders(folders, path, source);
      for (const fault of faultsIn(path, source)) {
        process.stdout.write(`${path}: ${fault}\n`);
        process.exitCode = 1;
      }
    }
    // The check must not pass because it found nothing to check.
    if (fileCount === 0) throw new Error(`Cannot check layers: no file is ${pattern}`);
  }
  for (const pair of unusedAllowances(used)) {
    process.stdout.write(`scripts/check/layers.ts: ${pair} is allowed, but no file imports it\n`);
    process.exitCode = 1;
  }
  const order = folderOrderIn(await Bun.file(TOUR).text());
  for (const fault of orderFaultsIn(folders, order)) {
    process.stdout.write(`${TOUR}: the order of sub-folders: ${fault}\n`);
    process.exitCode = 1;
  }
  for (const cycle of cyclesIn(folders)) {
    process.stdout.write(`sub-folders that import one another: ${cycle}\n`);
    process.exitCode = 1;
  }
}
