/**
 * Names the points at which a server is killed on purpose: before and after each operation of the
 * on-disk protocols.
 */

const FILE_KINDS: readonly (readonly [pattern: RegExp, kind: string])[] = [
  [/\/wal\/(\d{10}\.wal)?$/, "log"],
  [/\/wal\/HWM$/, "high-water file"],
  [/\/wal\/IDS$/, "id file"],
  [/\/(?:data|storage)\/tmp\/[^/]+\.seg$/, "pending segment"],
  [/\/(?:data|storage)\/tmp\/[^/]+\.dv$/, "pending vector"],
  [/\/data\/tmp\/[^/]+\.blob$/, "pending upload"],
  [/\/data\/tmp\/[^/]+$/, "spare log"],
  [/\/segments\/(?:.*\/)?$/, "segment"],
  [/\/segments\/.+\.seg$/, "segment"],
  [/\/segments\/.+\.dv$/, "vector"],
  [/\/files\//, "upload"],
];

/**
 * Returns the kind of file to which a path in a data directory or storage refers; "other" if no
 * protocol uses it.
 */
export function fileKind(path: string): string {
  return FILE_KINDS.find(([pattern]) => pattern.test(path))?.[1] ?? "other";
}

/**
 * The operations, each with the minimum number of times that a server under load performs it. The
 * server is killed at one of these occurrences, chosen at random.
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
  ["write pending segment", 6],
  ["truncate pending segment", 4],
  ["sync pending segment", 4],
  ["rename pending segment", 4],
  ["sync directory of segment", 4],
  ["remove segment", 2],
  ["write pending vector", 4],
  ["truncate pending vector", 3],
  ["sync pending vector", 3],
  ["rename pending vector", 3],
  ["remove vector", 2],
  ["write pending upload", 8],
  ["sync pending upload", 8],
  ["rename pending upload", 8],
  ["sync directory of upload", 8],
  ["commit catalog", 8],
];

export interface KillPoint {
  readonly name: string;
  /**
   * The minimum number of times that the point is reached. The process is killed at one of these
   * times, chosen at random.
   */
  readonly often: number;
}

export const KILL_POINTS: readonly KillPoint[] = OPERATIONS.flatMap(([operation, often]) =>
  ["before", "after"].map((when) => ({ name: `${when} ${operation}`, often })),
);
