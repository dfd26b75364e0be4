/**
 * Tests the features that `tidemark verify` and `tidemark repair` share: their arguments and the
 * files that they accept.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import type { Disk } from "../../src/base/disk.ts";
import {
  copyOf,
  freshDirectory,
  killedDirectory,
  maintain,
  removeDirectories,
  treeOf,
} from "../support/maintenance.ts";
import { headerOfFormat } from "../support/segment_files.ts";

let killed: string;

beforeAll(async () => {
  killed = await killedDirectory();
});

afterAll(removeDirectories);

test.each(["verify", "repair"] as const)("%s explains its usage on request", (command) => {
  for (const args of [["--help"], ["-h"], [killed, "--help"]]) {
    const { code, told, text } = maintain(command, args);
    expect({ code, told }).toEqual({ code: 0, told: "" });
    expect(text).toStartWith(`usage: tidemark ${command} <data_path>`);
  }
});

describe.each(["verify", "repair"] as const)(
  "%s exits with 2 and changes nothing if its arguments or its directory are wrong",
  (command) => {
    function expectRefusal(args: readonly string[], message: string | RegExp): void {
      const { code, lines, told } = maintain(command, args);
      expect(told).toMatch(message);
      expect({ code, lines }).toEqual({ code: 2, lines: [] });
    }

    test("no path, two paths or an unknown option is refused", () => {
      expectRefusal(
        [],
        `Cannot ${command}: specify the data directory\nusage: tidemark ${command}`,
      );
      expectRefusal([""], "specify the data directory");
      expectRefusal([killed, "/tmp"], "specify only one data directory, without /tmp");
      expectRefusal([killed, "--force"], "unknown option --force");
      if (command === "verify") expectRefusal([killed, "--accept-loss"], "unknown option");
    });

    test("a missing path, a file or a directory of another program is refused", () => {
      const directory = freshDirectory();
      const missing = join(directory, "missing");
      expectRefusal([missing], `Cannot ${command} ${missing}: there is no such directory`);
      expect(existsSync(missing)).toBe(false);
      const file = join(directory, "file");
      writeFileSync(file, "x");
      expectRefusal([file], /the path is a file, not a directory/);
      const other = join(directory, "other");
      mkdirSync(other);
      writeFileSync(join(other, "precious.txt"), "x");
      expectRefusal([other], /the directory is not a data directory/);
      expect(readdirSync(other)).toEqual(["precious.txt"]);
    });

    test("a directory or a catalog of a newer format is refused", () => {
      const path = copyOf(killed);
      writeFileSync(`${path}/format.json`, '{"format":2}\n');
      const before = treeOf(path);
      expectRefusal([path], /it has format 2, but this version reads only 1/);
      expect(treeOf(path)).toEqual(before);

      const other = copyOf(killed);
      const catalog = new Database(`${other}/catalog.sqlite`);
      catalog.run("PRAGMA user_version = 99");
      catalog.run("PRAGMA wal_checkpoint(TRUNCATE)");
      catalog.close();
      const tree = treeOf(other, ["LOCK"]);
      expectRefusal([other], /version 99.*; use the newer version of Tidemark/);
      expect(treeOf(other, ["LOCK"])).toEqual(tree);
    });

    test("a segment of a newer format is reported, but not as damage", () => {
      const path = copyOf(killed);
      const file = `${path}/segments/1/1.seg`;
      const bytes = readFileSync(file);
      bytes.set(headerOfFormat(9));
      writeFileSync(file, bytes);
      const before = treeOf(path);
      expectRefusal(
        [path],
        /1\.seg: it has format 9, but this version reads only 6; use the newer/,
      );
      expect(treeOf(path)).toEqual(before);
    });

    test("a directory that another process uses is refused", () => {
      const path = copyOf(killed);
      const release = bunDisk.lock(`${path}/LOCK`);
      const before = treeOf(path);
      const holder = `another process is using it (pid ${process.pid}); first stop the server that runs on`;
      expectRefusal([path], holder);
      expect(treeOf(path)).toEqual(before);
      // The server may not have written its process id yet, or the file may contain something
      // else.
      for (const text of ["", "17", "-1\n", "0\n", "17\n18\n"]) {
        writeFileSync(`${path}/LOCK`, text);
        expectRefusal([path], "another process is using it; first stop the server");
      }
      release?.();
    });
  },
);

test.each(["verify", "repair"] as const)(
  "%s writes nothing to the temporary directory while it reads segments and the log",
  (command) => {
    const temporary = freshDirectory();
    const left = new Map<string, string[]>();
    const disk: Disk = {
      ...bunDisk,
      open(path, options) {
        const kind = /\.(?:seg|wal)$/.exec(path)?.[0];
        if (kind !== undefined) left.set(kind, readdirSync(temporary));
        return bunDisk.open(path, options);
      },
    };
    const run = maintain(command, [copyOf(killed)], { disk, temporary });
    expect(run).toMatchObject({ code: 0 });
    expect(left.get(".seg")).toEqual([]);
    expect(left.get(".wal")).toEqual([]);
  },
);
