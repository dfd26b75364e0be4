/**
 * The places where a server is killed on purpose, by name: before and after each operation of which
 * the protocols on disk consist.
 */

const FILE_KINDS: readonly (readonly [pattern: RegExp, kind: string])[] = [
  [/\/wal\/(\d{10}\.wal)?$/, "log"],
  [/\/wal\/HWM$/, "high-water file"],
  [/\/wal\/IDS$/, "id file"],
  [/\/(?:data|storage)\/tmp\/[^/]+\.seg$/, "segment draft"],
  [/\/(?:data|storage)\/tmp\/[^/]+\.dv$/, "vector draft"],
  [/\/data\/tmp\/[^/]+\.blob$/, "upload draft"],
  [/\/data\/tmp\/[^/]+$/, "spare log"],
  [/\/segments\/(?:.*\/)?$/, "segment"],
  [/\/segments\/.+\.seg$/, "segment"],
  [/\/segments\/.+\.dv$/, "vector"],
  [/\/files\//, "upload"],
];

/**
 * What a path of a data directory, or of a storage, holds; "other" for what no protocol is about.
 */
export function fileKind(path: string): string {
  return FILE_KINDS.find(([pattern]) => pattern.test(path))?.[1] ?? "other";
}

/**
 * Operations with how often a server under load comes by, at least: it dies at one of so many.
 */
const OPERATIONS: readonly (readonly [operation: string, often: number])[] = [
  ["write log", 200],
  ["sync log", 200],
  ["rename log", 1],
  ["sync directory of log", 2],
  ["write spare log", 4],
  ["sync spare log", 1],
  ["rename spare log", 1],
  ["write high-water file", 100],
  ["write id file", 1],
  ["sync id file", 1],
  ["write segment draft", 6],
  ["truncate segment draft", 4],
  ["sync segment draft", 4],
  ["rename segment draft", 4],
  ["sync directory of segment", 4],
  ["remove segment", 2],
  ["write vector draft", 4],
  ["truncate vector draft", 3],
  ["sync vector draft", 3],
  ["rename vector draft", 3],
  ["remove vector", 2],
  ["write upload draft", 8],
  ["sync upload draft", 8],
  ["rename upload draft", 8],
  ["sync directory of upload", 8],
  ["commit catalog", 8],
];

export interface KillPoint {
  readonly name: string;
  /** The process dies at one of the first so many times. */
  readonly often: number;
}

export const KILL_POINTS: readonly KillPoint[] = OPERATIONS.flatMap(([operation, often]) =>
  ["before", "after"].map((when) => ({ name: `${when} ${operation}`, often })),
);
