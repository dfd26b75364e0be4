/**
 * Checks that imports under `src` point down, as the drawing in ARCHITECTURE.md has it.
 *
 * Imports are read as text: type imports count too, since they tie the reader just as much, and
 * there is no compiler interface to break with the next TypeScript. The formatter puts the module
 * name of an import on the line of its `from`.
 *
 * What no file uses is not allowed either: the next import there is then a decision, not an
 * accident. Inside a layer no two rooms import each other, directly or by way of others.
 */
import { posix } from "node:path";
import { Glob } from "bun";

/** What each folder of `src` may import besides itself. Everybody may import `base`. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  base: [],
  types: ["base"],
  protocol: ["base"],
  storage: ["base", "types"],
  catalog: ["base", "types"],
  auth: ["base", "protocol", "catalog"],
  threads: ["base", "storage"],
  sql: ["base", "types", "protocol", "catalog", "storage", "auth", "threads"],
  live: ["base", "types", "protocol", "catalog", "storage", "auth", "sql"],
  copies: ["base", "types", "catalog", "storage", "threads", "sql"],
  maintenance: ["base", "catalog", "storage", "auth", "sql", "copies"],
  server: ["base", "types", "protocol", "catalog", "auth", "sql", "live"],
  config: ["base", "auth", "server"],
  client: ["protocol"],
};

/** Packages and runtime modules that have one home, by the beginning of the path of their users. */
const HOMES: Readonly<Record<string, string>> = {
  "bun:sqlite": "src/catalog/",
  jose: "src/auth/",
  "node:fs": "src/base/",
  "node:fs/promises": "src/base/",
  msgpackr: "src/server/",
  "smol-toml": "src/config/",
};

/**
 * Second doors, and the folders that may enter by each: what they show is of no use to the others,
 * or would lead them past the first. A file directly in `src` enters by any.
 */
const SECOND_DOORS: Readonly<Record<string, readonly string[]>> = {
  "src/storage/files.ts": ["copies", "maintenance"],
};

/** These run in browsers and other runtimes too, so they use nothing of Bun or Node. */
const PORTABLE: ReadonlySet<string> = new Set(["protocol", "client"]);

const IMPORTED = /\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;

/** Lists what one file imports against the rules, as "<module>: <rule>". */
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

/** A folder of `src` and one that a file in it imports, as "<folder> → <other>". */
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
 * Rooms, the folders inside a layer, that need one another to read: what expressions are bound from
 * holds queries, and queries hold expressions.
 */
const KNOTS: readonly (readonly string[])[] = [["src/sql/bind/expression", "src/sql/bind/query"]];

/**
 * Rooms of one layer, by what their files import. The door looks into all of them, and is left out.
 */
export type RoomGraph = Map<string, Set<string>>;

/** Notes which rooms of its layer a file imports from. */
export function noteRooms(graph: RoomGraph, path: string, source: string): void {
  if (folderOf(path) === undefined || isDoor(path)) return;
  const from = posix.dirname(path);
  for (const module of modulesIn(source)) {
    const target = posix.join(from, module);
    const to = posix.dirname(target);
    if (!module.startsWith(".") || to === from || folderOf(target) !== folderOf(path)) continue;
    graph.set(from, (graph.get(from) ?? new Set()).add(to));
  }
}

/** Lists rooms that import one another, directly or by way of others, and are not known to. */
export function knotsIn(graph: RoomGraph): string[] {
  const knots = new Set<string>();
  for (const room of graph.keys()) {
    const reached = roomsBehind(graph, room);
    if (!reached.has(room)) continue;
    const knot = [...reached].filter((other) => roomsBehind(graph, other).has(room)).toSorted();
    knots.add(knot.join(" ↔ "));
  }
  const known = new Set(KNOTS.map((rooms) => rooms.join(" ↔ ")));
  return [
    ...[...knots].filter((knot) => !known.has(knot)),
    ...[...known].filter((knot) => !knots.has(knot)).map((knot) => `${knot}: no longer`),
  ];
}

function roomsBehind(graph: RoomGraph, room: string): Set<string> {
  const reached = new Set<string>();
  const open = [room];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const other of graph.get(next) ?? []) {
      if (reached.has(other)) continue;
      reached.add(other);
      open.push(other);
    }
  }
  return reached;
}

/**
 * Lists what may be imported and is not.
 * @param used What {@linkcode foldersUsedIn} found in all files.
 */
export function unusedAllowances(used: ReadonlySet<string>): string[] {
  return Object.entries(BELOW).flatMap(([from, below]) =>
    below.map((to) => `${from} → ${to}`).filter((pair) => !used.has(pair)),
  );
}

/** The admin page enters `src` where any other client does. */
const UI_DOORS: ReadonlySet<string> = new Set(["src/client/mod.ts", "src/protocol/mod.ts"]);

/** Lists what one file of the admin page imports against the rules. */
export function uiFaultsIn(path: string, source: string): string[] {
  const faults: string[] = [];
  for (const module of modulesIn(source)) {
    const target = posix.join(posix.dirname(path), module);
    if (!module.startsWith(".") || target.startsWith("ui/") || UI_DOORS.has(target)) continue;
    faults.push(`"${module}" is neither of the page nor the door of client or protocol`);
  }
  return faults;
}

/** What a file imports, in whatever form. */
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
  // The version is written down once.
  if (target === "package.json" && from === undefined) return undefined;
  if (!target.startsWith("src/")) return "is outside src";
  const to = folderOf(target);
  // A file directly in src wires the layers: it may enter each of them, by its door.
  if (to === undefined) return from === undefined ? undefined : "is above every folder";
  if (from === to) return isDoor(target) ? "is the folder's own door" : undefined;
  if (from !== undefined && BELOW[from]?.includes(to) !== true) return `is not below ${from}`;
  if (from !== undefined && SECOND_DOORS[target]?.includes(from) === false) {
    return `is no door for ${from}`;
  }
  return to === "base" || isDoor(target) ? undefined : `passes by src/${to}/mod.ts`;
}

/** The folder of `src` that a file is in, at whatever depth; undefined directly in `src`. */
function folderOf(path: string): string | undefined {
  const [, folder, inside] = path.split("/");
  return inside === undefined ? undefined : folder;
}

/** A `mod.ts` further down is an ordinary file. */
function isDoor(path: string): boolean {
  return /^src\/[^/]+\/mod\.ts$/.test(path) || Object.hasOwn(SECOND_DOORS, path);
}

if (import.meta.main) {
  const used = new Set<string>();
  const rooms: RoomGraph = new Map();
  for (const [pattern, faultsIn] of [
    ["src/**/*.ts", layerFaultsIn],
    ["ui/src/**/*.{ts,tsx}", uiFaultsIn],
  ] as const) {
    let fileCount = 0;
    for await (const path of new Glob(pattern).scan()) {
      fileCount += 1;
      const source = await Bun.file(path).text();
      for (const pair of foldersUsedIn(path, source)) used.add(pair);
      noteRooms(rooms, path, source);
      for (const fault of faultsIn(path, source)) {
        process.stdout.write(`${path}: ${fault}\n`);
        process.exitCode = 1;
      }
    }
    // A checker that finds nothing to check must not pass.
    if (fileCount === 0) throw new Error(`Cannot check layers: no file is ${pattern}`);
  }
  for (const pair of unusedAllowances(used)) {
    process.stdout.write(`scripts/check/layers.ts: ${pair} is allowed, and no file imports it\n`);
    process.exitCode = 1;
  }
  for (const knot of knotsIn(rooms)) {
    process.stdout.write(`rooms that import one another: ${knot}\n`);
    process.exitCode = 1;
  }
}
