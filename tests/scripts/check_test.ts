/**
 * The checks are trusted because they find what is planted for them.
 */
import { describe, expect, test } from "bun:test";
import {
  foldersUsedIn,
  knotsIn,
  layerFaultsIn,
  noteRooms,
  type RoomGraph,
  uiFaultsIn,
  unusedAllowances,
} from "../../scripts/check/layers.ts";
import { missingFrom, pathsIn } from "../../scripts/check/paths.ts";
import { untidyIn } from "../../scripts/check/tidy.ts";

describe("layerFaultsIn", () => {
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
    ["src/sql/local_engine.ts", 'import { jwtVerify } from "jose";'],
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
    ["src/copies/backup.ts", 'import { x } from "../catalog/files.ts";'],
  ];

  test.each(forbidden)("finds the fault in %s: %s", (path, source) => {
    expect(layerFaultsIn(path, source)).toHaveLength(1);
  });

  const allowed: readonly (readonly [path: string, source: string])[] = [
    ["src/storage/segment/reader.ts", 'import { x } from "../scan.ts";'],
    ["src/storage/segment/reader.ts", 'import { assert } from "../../base/assert.ts";'],
    ["src/storage/scan.ts", 'import type { Vector } from "../types/mod.ts";'],
    ["src/server/server.ts", 'import { deflateSync } from "node:zlib";'],
    ["src/database.ts", 'import { Store } from "./storage/mod.ts";'],
    ["src/copies/backup.ts", 'import { segmentPath } from "../storage/files.ts";'],
    ["src/open_layers.ts", 'import { holdsRows } from "./storage/files.ts";'],
    ["src/main.ts", 'import { open } from "./database.ts";'],
    ["src/version.ts", 'import { version } from "../package.json";'],
    ["src/main.ts", 'import { systemClock } from "./base/clock.ts";'],
  ];

  test.each(allowed)("lets %s pass: %s", (path, source) => {
    expect(layerFaultsIn(path, source)).toEqual([]);
  });
});

test("foldersUsedIn names what a file of a folder imports of others", () => {
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

describe("knotsIn", () => {
  const known = [
    ["src/sql/bind/expression/calls.ts", 'import { bindQuery } from "../query/select.ts";'],
    ["src/sql/bind/query/select.ts", 'import { bindCall } from "../expression/calls.ts";'],
  ] as const;

  function knots(...files: readonly (readonly [path: string, source: string])[]): string[] {
    const graph: RoomGraph = new Map();
    for (const [path, source] of [...known, ...files]) noteRooms(graph, path, source);
    return knotsIn(graph);
  }

  test("lets rooms pass that are known to need one another, and those on top of each other", () => {
    expect(knots(["src/storage/commit/commit.ts", 'from "../table/table.ts"'])).toEqual([]);
  });

  test("finds rooms that import one another by way of a third", () => {
    const found = knots(
      ["src/storage/commit/commit.ts", 'import { Table } from "../table/table.ts";'],
      ["src/storage/table/table.ts", 'import type { Store } from "../local_store.ts";'],
      ["src/storage/local_store.ts", 'import { Commit } from "./commit/commit.ts";'],
    );
    expect(found).toEqual(["src/storage ↔ src/storage/commit ↔ src/storage/table"]);
  });

  test("says when rooms that were known to be a knot are none", () => {
    expect(knotsIn(new Map())).toHaveLength(1);
  });

  test("leaves out the doors, which look into all rooms, and other layers", () => {
    const found = knots(
      ["src/storage/files.ts", 'export { planCommit } from "./commit/plan.ts";'],
      ["src/storage/mod.ts", 'export { Commit } from "./commit/commit.ts";'],
      ["src/storage/commit/commit.ts", 'import { x } from "../local_store.ts";'],
      ["src/storage/commit/other.ts", 'import { x } from "../../types/mod.ts";'],
    );
    expect(found).toEqual([]);
  });
});

test("unusedAllowances lists what may be imported and is not", () => {
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
])("uiFaultsIn of %s: %d", (source, count) => {
  expect(uiFaultsIn("ui/src/results.tsx", source)).toHaveLength(count);
});

/** A file with one untidy line, whose parts are apart here so that this file stays tidy itself. */
function planted(line: string): string {
  return `/** Why. */\n${line.replace("|", "")}\n`;
}

describe("untidyIn", () => {
  test.each([
    ["no header", "const a = 1;\n"],
    ["an open end", planted("// TO|DO later")],
    ["a confession", planted("// FIX|ME")],
    ["a lonely test", planted('test.on|ly("x", () => {});')],
    ["a template in assert", planted("ass|ert(a, `no`);")],
    ["a silenced compiler", planted("// @ts-ign|ore")],
    ["a banner", planted("// --|-- helpers")],
    ["a long file", `/** Why. */\n${"const a = 1;\n".repeat(2000)}`],
    ["a wide line of a header", `/**\n * ${"word ".repeat(20)}\n */\n`],
    ["a line of 101 columns", `/**\n * ${"word ".repeat(19)}abc\n */\n`],
    ["a wide line before a statement", planted(`  // ${"word ".repeat(20)}`)],
    ["a wide comment of one line", planted(`/** ${"word ".repeat(19)}*/`)],
  ])("finds %s", (_name, source) => {
    expect(untidyIn("src/x.ts", source)).toHaveLength(1);
  });

  test("lets a tidy file pass, also one with an issue number or a first line for the shell", () => {
    expect(untidyIn("src/x.ts", planted("const a = 1; // TODO(#12) widen"))).toEqual([]);
    expect(untidyIn("src/x.ts", "#!/usr/bin/env bun\n/** Why. */\n")).toEqual([]);
  });

  test.each([
    ["of a hundred columns", ` * ${"word ".repeat(19)}ab`],
    ["that cannot be broken", ` * - https://example.com/${"word".repeat(25)}`],
    ["of a command", ` *     bun scripts/bench.ts ${"--only live ".repeat(8)}`],
    ["of a table", ` * a  ${"word ".repeat(20)}`],
    ["of a drawing", ` * a ──► ${"word ".repeat(20)}`],
  ])("lets a line %s pass", (_name, line) => {
    expect(untidyIn("src/x.ts", `/**\n${line.trimEnd()}\n */\n`)).toEqual([]);
  });
});

describe("pathsIn", () => {
  const folders = new Set(["src", "scripts", "storage"]);

  test.each([
    ["a file, in a sentence", "See `src/main.ts`, then more.", ["src/main.ts"]],
    ["a folder of src", "In `storage/commit/`.", ["storage/commit/"]],
    ["a name without its folder", "In `profile.ts`.", ["profile.ts"]],
    ["a command", "`bun scripts/bench.ts --only live`", ["scripts/bench.ts"]],
    ["each part of braces", "`src/{a,b}/{c,d}.ts`", "src/a/c.ts src/a/d.ts src/b/c.ts src/b/d.ts"],
    ["a drawing", "```\n 9 storage/commit/commit   one turn\n```\n", ["storage/commit/commit"]],
    [
      "neither an endpoint, a file of the data nor a setting",
      "`/v1/ws` `wal/HWM` `a.b` `mod.ts`",
      [],
    ],
  ])("finds %s", (_name, document, found) => {
    expect(pathsIn(document, folders)).toEqual(
      typeof found === "string" ? found.split(" ") : found,
    );
  });
});

test("missingFrom finds the path that leads nowhere, and no other", () => {
  const document = "`main.ts`, `storage/mod.ts`, `src/base/`, `base/errors`, `src/base/nowhere.ts`";
  expect(missingFrom(document, new Set(["src", "base", "storage"]))).toEqual([
    "src/base/nowhere.ts",
  ]);
});
