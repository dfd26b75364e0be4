/**
 * Tests how `tidemark verify` and `tidemark repair` handle index files. A file that is missing,
 * damaged, or wrong despite a correct checksum must be found and rebuilt, and must never cause a
 * wrong result.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { forgeIndex } from "../support/forged_index.ts";
import { forgeTerms, termPartOf } from "../support/forged_terms.ts";
import {
  copyOf,
  freshDirectory,
  maintain,
  OpenDirectory,
  removeDirectories,
} from "../support/maintenance.ts";

let directory: string;

beforeAll(async () => {
  directory = freshDirectory();
  await using database = await OpenDirectory.open(directory);
  await database.rows("CREATE TABLE t (id INT PRIMARY KEY, v TEXT UNIQUE)");
  await database.rows("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 500) g");
  await database.rows("STORAGE FLUSH TABLE t");
  await database.rows("CREATE INDEX t_computed ON t (right(v, 2)) WHERE id > 100");
});

afterAll(removeDirectories);

/** Returns the path of the first index file, or of the last one. */
function indexFile(path: string, isLast = false): string {
  const names = readdirSync(join(path, "segments"), { recursive: true, encoding: "utf8" });
  const found = names.filter((name) => name.endsWith(".idx")).toSorted();
  return join(path, "segments", found.at(isLast ? -1 : 0) ?? "none");
}

describe("checks of an index file find damage", () => {
  test("an index file is intact at first", () => {
    const { code, text } = maintain("verify", [directory]);
    expect({ code, text }).toMatchObject({ code: 0 });
  });

  test.each<readonly [what: string, harm: (file: string) => void]>([
    ["is missing", (file) => rmSync(file)],
    [
      "has a flipped byte",
      (file) => {
        const bytes = readFileSync(file);
        bytes[1000] = (bytes[1000] ?? 0) ^ 1;
        writeFileSync(file, bytes);
      },
    ],
    ["is cut off", (file) => writeFileSync(file, readFileSync(file).subarray(0, 200))],
    [
      "has a stale entry",
      (file) =>
        forgeIndex(file, ({ rows }) => {
          rows[7] = rows[8] ?? 0;
        }),
    ],
    [
      "has two entries in the wrong order",
      (file) =>
        forgeIndex(file, ({ prefixes, rows }) => {
          prefixes.reverse();
          rows.reverse();
        }),
    ],
    [
      "has another prefix",
      (file) =>
        forgeIndex(file, ({ prefixes }) => {
          prefixes[300] = (prefixes[300] ?? 0) + 1;
        }),
    ],
  ])("is found and made again if it %s", async (what, harm) => {
    const path = copyOf(directory);
    // Some of the faults are also injected into an index on an expression.
    for (const isLast of what.startsWith("has ") ? [false, true] : [false]) {
      const file = indexFile(path, isLast);
      const good = readFileSync(file);
      harm(file);
      expect(maintain("verify", [path]).code).toBe(1);
      expect(maintain("repair", [path]).code).toBe(0);
      expect(readFileSync(file).equals(good)).toBe(true);
    }
    expect(maintain("verify", [path]).code).toBe(0);
  });

  test.each<readonly [what: string, harm: (file: string) => void]>([
    ["missing", (file) => rmSync(file)],
    ["cut off", (file) => writeFileSync(file, readFileSync(file).subarray(0, 200))],
  ])("that is %s changes no answer", async (_what, harm) => {
    const path = copyOf(directory);
    harm(indexFile(path));
    await using database = await OpenDirectory.open(path);
    const response = await database.ask("INSERT INTO t VALUES (900, 'v77')");
    expect(response.error?.code).toBe("DUPLICATE_KEY");
    const { results } = await database.ask("SELECT id FROM t WHERE v = 'v77'");
    expect(results.at(-1)?.rows).toEqual([[77]]);
  });
});

describe("checks of the file of an inverted index find damage", () => {
  let inverted: string;

  beforeAll(async () => {
    inverted = freshDirectory();
    await using database = await OpenDirectory.open(inverted);
    await database.rows("CREATE TABLE t (id INT PRIMARY KEY, v TEXT)");
    await database.rows("CREATE INDEX ON t USING gin (v gin_trgm_ops)");
    await database.rows("INSERT INTO t SELECT g, 'word' || g FROM generate_series(1, 500) g");
    await database.rows("STORAGE FLUSH TABLE t");
  });

  test.each<readonly [what: string, harm: (file: string) => void]>([
    ["is missing", (file) => rmSync(file)],
    [
      "has a flipped byte",
      (file) => {
        const bytes = readFileSync(file);
        bytes[300] = (bytes[300] ?? 0) ^ 1;
        writeFileSync(file, bytes);
      },
    ],
    ["is cut off", (file) => writeFileSync(file, readFileSync(file).subarray(0, 200))],
    [
      "has a stale entry",
      (file) =>
        forgeTerms(file, (part) => {
          // Changes the row number that comes first in the list of the first term.
          const [termCount = 0] = new Uint32Array(part.buffer, 0, 1);
          part[24 + 8 * termCount] = (part[24 + 8 * termCount] ?? 0) ^ 1;
          return part;
        }),
    ],
    ["lacks its entries", (file) => forgeTerms(file, () => termPartOf(() => []))],
    [
      "has the entries of other rows",
      (file) => forgeTerms(file, () => termPartOf((row) => [`${row}`])),
    ],
  ])("is found and made again if it %s", (_what, harm) => {
    const path = copyOf(inverted);
    expect(maintain("verify", [path]).code).toBe(0);
    const file = indexFile(path);
    const good = readFileSync(file);
    harm(file);
    expect(maintain("verify", [path]).code).toBe(1);
    expect(maintain("repair", [path]).code).toBe(0);
    expect(readFileSync(file).equals(good)).toBe(true);
    expect(maintain("verify", [path]).code).toBe(0);
  });

  test("a missing file of an inverted index changes no result", async () => {
    const path = copyOf(inverted);
    rmSync(indexFile(path));
    await using database = await OpenDirectory.open(path);
    const { results } = await database.ask("SELECT id FROM t WHERE v LIKE '%rd77%'");
    expect(results.at(-1)?.rows).toEqual([[77]]);
  });
});
