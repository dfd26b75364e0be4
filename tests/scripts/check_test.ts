/** Verifies on known cases that the project's own checks detect faults. */
import { describe, expect, test } from "bun:test";
import { hitsIn, isHeadless, sentencesIn } from "../../scripts/check/language.ts";
import {
  cyclesIn,
  type FolderGraph,
  folderOrderIn,
  foldersUsedIn,
  layerFaultsIn,
  noteFolders,
  orderFaultsIn,
  testFaultsIn,
  uiFaultsIn,
  unusedAllowances,
} from "../../scripts/check/layers.ts";
import { missingFrom, pathsIn } from "../../scripts/check/paths.ts";
import { repeatedTypes, untidyIn } from "../../scripts/check/tidy.ts";

describe("layerFaultsIn finds imports that point up or past a mod.ts", () => {
  const forbidden: readonly (readonly [path: string, source: string])[] = [
    ["src/storage/scan.ts", 'import { bind } from "../sql/mod.ts";'],
    ["src/storage/scan.ts", 'import type {\n  Bound,\n  Plan,\n} from "../sql/mod.ts";'],
    ["src/storage/scan.ts", 'export { Catalog } from "../catalog/mod.ts";'],
    ["src/storage/segment/reader.ts", 'import { x } from "../../types/vector.ts";'],
    ["src/storage/segment/reader.ts", 'import { x } from "../mod.ts";'],
    ["src/storage/scan.ts", 'import { x } from "../types/codec/mod.ts";'],
    ["src/storage/scan.ts", 'import { x } from "../database.ts";'],
    ["src/storage/scan.ts", 'import { x } from "../../tests/support/random.ts";'],
    ["src/storage/scan.ts", 'import { version } from "../../package.json";'],
    ["src/storage/scan.ts", 'import { Database } from "bun:sqlite";'],
    ["src/storage/scan.ts", 'import { readFileSync } from "node:fs";'],
    ["src/storage/scan.ts", 'import { readFile } from "node:fs/promises";'],
    ["src/sql/execute/scan.ts", 'import { parse } from "pgsql-ast-parser";'],
    ["src/sql/local_engine.ts", 'import "left-pad";'],
    ["src/sql/local_engine.ts", 'const lib = await import("left-pad");'],
    ["src/base/clock.ts", 'import { x } from "../types/mod.ts";'],
    ["src/protocol/messages.ts", 'import { serve } from "bun";'],
    ["src/client/client.ts", 'import { join } from "node:path";'],
    ["src/client/client.ts", 'import { assert } from "../base/assert.ts";'],
    ["src/server/server.ts", 'import { createClient } from "../client/mod.ts";'],
    ["src/server/server.ts", 'import { Live } from "../live/live.ts";'],
    ["src/main.ts", 'import { Store } from "./storage/store.ts";'],
    ["src/strange/new.ts", 'import { Store } from "../storage/mod.ts";'],
    ["src/auth/token.ts", 'import type { Value } from "../types/mod.ts";'],
    ["src/auth/token.ts", 'import { Store } from "../storage/mod.ts";'],
    ["src/server/server.ts", 'import { Store } from "../storage/mod.ts";'],
    ["src/sql/local_engine.ts", 'import { cutLog } from "../storage/files.ts";'],
    ["src/storage/segment/reader.ts", 'import { segmentPath } from "../files.ts";'],
    ["src/backup/backup.ts", 'import { x } from "../catalog/files.ts";'],
  ];

  test.each(forbidden)("layerFaultsIn finds the fault in %s: %s", (path, source) => {
    expect(layerFaultsIn(path, source)).toHaveLength(1);
  });

  const allowed: readonly (readonly [path: string, source: string])[] = [
    ["src/storage/segment/reader.ts", 'import { x } from "../scan.ts";'],
    ["src/storage/segment/reader.ts", 'import { assert } from "../../base/assert.ts";'],
    ["src/storage/scan.ts", 'import type { Vector } from "../types/mod.ts";'],
    ["src/server/server.ts", 'import { deflateSync } from "node:zlib";'],
    ["src/database.ts", 'import { Store } from "./storage/mod.ts";'],
    ["src/backup/backup.ts", 'import { segmentPath } from "../storage/files.ts";'],
    ["src/open_layers.ts", 'import { holdsRows } from "./storage/files.ts";'],
    ["src/main.ts", 'import { open } from "./database.ts";'],
    ["src/version.ts", 'import { version } from "../package.json";'],
    ["src/main.ts", 'import { systemClock } from "./base/clock.ts";'],
  ];

  test.each(allowed)("layerFaultsIn accepts %s: %s", (path, source) => {
    expect(layerFaultsIn(path, source)).toEqual([]);
  });
});

describe("testFaultsIn finds tests that import past a mod.ts", () => {
  test.each([
    ["tests/live/program/read_size_test.ts", "../../../src/live/delivery/groups.ts"],
    ["tests/sql/cases_a_to_o_test.ts", "../../src/sql/functions/registry.ts"],
    ["tests/client/outgoing_test.ts", "../../src/server/admission/rate_limit.ts"],
    ["tests/campaigns/crash_states/steps.ts", "../../../src/storage/commit/commit.ts"],
    ["tests/auth/token_test.ts", "../../src/catalog/accounts.ts"],
  ])("testFaultsIn finds the fault in %s: %s", (path, module) => {
    expect(testFaultsIn(path, `import { x } from "${module}";`)).toHaveLength(1);
  });

  test.each([
    ["tests/sql/parse/text/lexer_test.ts", "../../../../src/sql/parse/parser.ts"],
    ["tests/sql/parse_test.ts", "../../src/sql/parse/parser.ts"],
    ["tests/auth/token_test.ts", "../../src/auth/token.ts"],
    ["tests/live/recent_plans_test.ts", "../../src/live/recent_plans.ts"],
    ["tests/smoke/live_test.ts", "../../src/client/mod.ts"],
    ["tests/maintenance/maintenance_test.ts", "../../src/storage/files.ts"],
    ["tests/simulation/live_worlds.ts", "../../src/base/clock.ts"],
    ["tests/database_test.ts", "../src/database.ts"],
    ["tests/support/forged_segment.ts", "../../src/storage/segment/format.ts"],
  ])("testFaultsIn accepts %s: %s", (path, module) => {
    expect(testFaultsIn(path, `import { x } from "${module}";`)).toEqual([]);
  });
});

test("foldersUsedIn names the folders from which a file imports", () => {
  const source = `
import { serve } from "bun";
import { assert } from "../base/assert.ts";
import type { Principal } from "./principal.ts";
import {
  type Catalog,
} from "../catalog/mod.ts";`;
  expect(foldersUsedIn("src/auth/auth.ts", source)).toEqual(["auth → base", "auth → catalog"]);
  expect(foldersUsedIn("src/auth.ts", source)).toEqual([]);
  expect(foldersUsedIn("ui/src/auth/auth.ts", source)).toEqual([]);
});

describe("orderFaultsIn checks the order of sub-folders", () => {
  const tour = `# Tour

| folder | contents |
|---|---|
| \`live/\` | the engine |
| \`live/delivery\`, \`rows\` | groups, and rows in \`json\` |

| other | table |
|---|---|
| \`sql/\` | another |
`;

  function faults(...files: readonly (readonly [path: string, source: string])[]): string[] {
    const graph: FolderGraph = new Map();
    for (const [path, source] of files) noteFolders(graph, path, source);
    return orderFaultsIn(graph, folderOrderIn(tour));
  }

  const down = [
    ["src/live/engine.ts", 'import { Group } from "./delivery/group.ts";'],
    ["src/live/delivery/inner/group.ts", 'import { Row } from "../../rows/row.ts";'],
  ] as const;

  test("orderFaultsIn accepts imports of sub-folders further down or further right, at any depth", () => {
    expect(folderOrderIn(tour)).toEqual(["live", "live/delivery", "live/rows"]);
    expect(faults(...down)).toEqual([]);
  });

  test("orderFaultsIn finds an import that points up, and one that points left within a row", () => {
    expect(faults(...down, ["src/live/rows/row.ts", 'from "../engine.ts"'])).toEqual([
      "live/rows imports live, which the table lists above it",
    ]);
    expect(
      faults(...down, ["src/live/rows/inner/row.ts", 'from "../../delivery/group.ts"']),
    ).toEqual(["live/rows imports live/delivery, which the table lists above it"]);
  });

  test("orderFaultsIn finds sub-folders that the table or the source lacks", () => {
    expect(faults(...down, ["src/live/delivery/x.ts", 'from "../replay/x.ts"'])).toEqual([
      "live/replay is missing",
    ]);
    expect(faults(down[0])).toEqual(["live/rows is in no import"]);
    expect(orderFaultsIn(new Map([["src/live", new Set(["src/live/rows"])]]), [])).toEqual([
      "live is missing",
      "live/rows is missing",
    ]);
  });
});

describe("cyclesIn finds cycles of imports", () => {
  const known = [
    ["src/sql/bind/expression/calls.ts", 'import { bindQuery } from "../query/select.ts";'],
    ["src/sql/bind/query/select.ts", 'import { bindCall } from "../expression/calls.ts";'],
  ] as const;

  function cycles(...files: readonly (readonly [path: string, source: string])[]): string[] {
    const graph: FolderGraph = new Map();
    for (const [path, source] of [...known, ...files]) noteFolders(graph, path, source);
    return cyclesIn(graph);
  }

  test("cyclesIn accepts the known mutual imports of sub-folders, and imports without a cycle", () => {
    expect(cycles(["src/storage/commit/commit.ts", 'from "../table/table.ts"'])).toEqual([]);
  });

  test("cyclesIn finds sub-folders that import each other through a third one", () => {
    const found = cycles(
      ["src/storage/commit/commit.ts", 'import { Table } from "../table/table.ts";'],
      ["src/storage/table/table.ts", 'import type { Store } from "../local_store.ts";'],
      ["src/storage/local_store.ts", 'import { Commit } from "./commit/commit.ts";'],
    );
    expect(found).toEqual(["src/storage ↔ src/storage/commit ↔ src/storage/table"]);
  });

  test("cyclesIn reports a known cycle that no longer exists", () => {
    expect(cyclesIn(new Map())).toHaveLength(1);
  });

  test("cyclesIn ignores mod.ts files, which import all sub-folders, and other layers", () => {
    const found = cycles(
      ["src/storage/files.ts", 'export { planCommit } from "./commit/plan.ts";'],
      ["src/storage/mod.ts", 'export { Commit } from "./commit/commit.ts";'],
      ["src/storage/commit/commit.ts", 'import { x } from "../local_store.ts";'],
      ["src/storage/commit/other.ts", 'import { x } from "../../types/mod.ts";'],
    );
    expect(found).toEqual([]);
  });
});

test("unusedAllowances lists allowed imports that do not exist", () => {
  const all = new Set(unusedAllowances(new Set()));
  expect(all.has("auth → catalog")).toBe(true);
  expect(unusedAllowances(all)).toEqual([]);
  const used = new Set(all);
  used.delete("auth → catalog");
  expect(unusedAllowances(used)).toEqual(["auth → catalog"]);
});

test.each([
  ['import type { Row } from "../../src/types/mod.ts";', 1],
  ['import { connect } from "../../src/client/connection.ts";', 1],
  ['import { x } from "../../scripts/build_ui.ts";', 1],
  ['import { createClient } from "../../src/client/mod.ts";', 0],
  ['import type { SchemaField } from "../../src/protocol/mod.ts";', 0],
  ['import { Grid } from "./grid.tsx"; import { useState } from "react";', 0],
])("uiFaultsIn finds in %s this number of faults: %d", (source, count) => {
  expect(uiFaultsIn("ui/src/results.tsx", source)).toHaveLength(count);
});

/**
 * Returns the source of a file with one untidy line. A `|` in this test's source splits each such
 * line, so that the test file itself stays tidy.
 */
function sourceWith(line: string): string {
  return `/** Why. */\n${line.replace("|", "")}\n`;
}

test("repeatedTypes lists a type that two files declare, but not two declarations in one file", () => {
  const sources = new Map([
    ["src/a.ts", "export interface Span {}\ninterface Own {}\ntype Spans = Span[];\n"],
    ["src/b.ts", "class Span {}\nfunction f() {\n  type Own = 1;\n}\n"],
  ]);
  expect(repeatedTypes(sources)).toEqual([
    "the type Span needs a different name in each of src/a.ts, src/b.ts",
  ]);
});

describe("untidyIn finds faults of layout", () => {
  test.each([
    ["no header", "const a = 1;\n"],
    ["an open end", sourceWith("// TO|DO later")],
    ["a confession", sourceWith("// FIX|ME")],
    ["a lonely test", sourceWith('test.on|ly("x", () => {});')],
    ["a template in assert", sourceWith("ass|ert(a, `no`);")],
    ["a silenced compiler", sourceWith("// @ts-ign|ore")],
    ["a banner", sourceWith("// --|-- helpers")],
    ["a long file", `/** Why. */\n${"const a = 1;\n".repeat(4000)}`],
    ["a wide line of a header", `/**\n * ${"word ".repeat(20)}\n */\n`],
    ["a line of 101 columns", `/**\n * ${"word ".repeat(19)}abc\n */\n`],
    ["a wide line before a statement", sourceWith(`  // ${"word ".repeat(20)}`)],
    ["a wide comment of one line", sourceWith(`/** ${"word ".repeat(19)}*/`)],
  ])("finds %s", (_name, source) => {
    expect(untidyIn("src/x.ts", source)).toHaveLength(1);
  });

  test("untidyIn accepts a tidy file, even with an issue number or a shebang line", () => {
    expect(untidyIn("src/x.ts", sourceWith("const a = 1; // TODO(#12) widen"))).toEqual([]);
    expect(untidyIn("src/x.ts", "#!/usr/bin/env bun\n/** Why. */\n")).toEqual([]);
  });

  test.each([
    ["of a hundred columns", ` * ${"word ".repeat(19)}ab`],
    ["that cannot be broken", ` * - https://example.com/${"word".repeat(25)}`],
    ["of a command", ` *     bun scripts/bench/compare.ts ${"--only live ".repeat(8)}`],
    ["of a table", ` * a  ${"word ".repeat(20)}`],
    ["of a drawing", ` * a ──► ${"word ".repeat(20)}`],
  ])("lets a line %s pass", (_name, line) => {
    expect(untidyIn("src/x.ts", `/**\n${line.trimEnd()}\n */\n`)).toEqual([]);
  });
});

describe("pathsIn finds the paths that a document names", () => {
  const folders = new Set(["src", "scripts", "storage"]);

  test.each([
    ["a file, in a sentence", "See `src/main.ts`, then more.", ["src/main.ts"]],
    ["a folder of src", "In `storage/commit/`.", ["storage/commit/"]],
    ["a name without its folder", "In `profile.ts`.", ["profile.ts"]],
    ["a command", "`bun scripts/bench/compare.ts --only live`", ["scripts/bench/compare.ts"]],
    ["each part of braces", "`src/{a,b}/{c,d}.ts`", "src/a/c.ts src/a/d.ts src/b/c.ts src/b/d.ts"],
    ["a drawing", "```\n 9 storage/commit/commit   one turn\n```\n", ["storage/commit/commit"]],
    [
      "neither an endpoint, a file of the data nor a setting",
      "`/v1/ws` `wal/HWM` `a.b` `mod.ts`",
      [],
    ],
  ])("pathsIn finds %s", (_name, document, found) => {
    expect(pathsIn(document, folders)).toEqual(
      typeof found === "string" ? found.split(" ") : found,
    );
  });
});

test("missingFrom finds only the path that does not exist", () => {
  const document = "`main.ts`, `storage/mod.ts`, `src/base/`, `base/errors`, `src/base/nowhere.ts`";
  expect(missingFrom(document, new Set(["src", "base", "storage"]))).toEqual([
    "src/base/nowhere.ts",
  ]);
});

describe("the language check finds headless sentences and stiff phrases", () => {
  test.each([
    "What a reader may see.",
    "Who is connected; undefined before authentication.",
    "Whoever reads the list is told.",
    "Of a row, its place.",
    "Of the three that failed.",
    "Those of a table are dropped.",
    "Where the file lies.",
    "With its labels.",
    "So that nobody waits.",
    "As the planner does, and in its order.",
    "For which there is no index.",
    "But which of them is newer.",
  ])("isHeadless() finds %p", (sentence) => {
    expect(isHeadless(sentence)).toBe(true);
  });

  test.each([
    "Of the three, one is kept.",
    "Of course the log grows.",
    "Those rows are dropped.",
    "Where the disk is slow, writes wait for it.",
    "With the lock held, no other writer runs.",
    "As the planner knows the order, it skips the sort.",
    "Who wrote this row?",
    "Whether the row is visible.",
    "The bytes of a page.",
    "For each row, the key is computed once.",
    "Whatsoever",
  ])("isHeadless() lets %p pass", (sentence) => {
    expect(isHeadless(sentence)).toBe(false);
  });

  function found(source: string, path = "src/storage/scan.ts"): string[] {
    return hitsIn(sentencesIn(path, source)).map(({ line, kind }) => `${line} ${kind}`);
  }

  test("headless openings are found in comments, tags, items, messages and test names", () => {
    expect(found("/**\n * Good. What a file\n * holds.\n */")).toEqual(["2 opening"]);
    expect(found("const a = 1; // Of a row.")).toEqual(["1 opening"]);
    expect(found("// Reads rows\n// of a table. Those that\n// fail end it.")).toEqual([
      "2 opening",
    ]);
    expect(found("/** @returns what was read */")).toEqual(["1 opening"]);
    expect(found("/**\n * Three:\n * - one is read\n * - which is not\n */")).toEqual([
      "4 opening",
    ]);
    expect(found('fail("Where no table is given");')).toEqual(["1 opening"]);
    expect(found('test("what nobody reads is dropped", () => {});')).toEqual(["1 opening"]);
    expect(found("# Rows\n\nGood. Who reads.\n", "README.md")).toEqual(["3 opening"]);
  });

  test("stiff phrases are found in every kind of text", () => {
    expect(found("// A copy for who asks.\nconst a = 1;")).toEqual(["1 phrase"]);
    expect(found('fail("no row, as this hangs on its key");')).toEqual(["1 phrase"]);
    expect(found("// A lock that hangs on to its owner.")).toEqual([]);
  });

  test("code, drawings, fences, SQL and continued lines are accepted", () => {
    expect(found("// `What` is read.\n//\n//    What   bytes\n")).toEqual([]);
    expect(found("// The rows that the reader of\n// Those tables has.\n")).toEqual([]);
    expect(found("```\nWhat it is.\n```\n| What | Who |\n", "README.md")).toEqual([]);
    expect(
      found('run("SELECT who FROM t GROUP BY who", "WITH a AS (SELECT 1) SELECT 1");'),
    ).toEqual([]);
    expect(found('const pattern = /"/; // Rows.\nconst quote = "\'";')).toEqual([]);
  });
});
