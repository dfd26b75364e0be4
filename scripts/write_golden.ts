/**
 * Writes the golden data directory of the formats as they are, to be kept for ever:
 *
 *     bun scripts/write_golden.ts <format number>
 *
 * It makes `tests/fixtures/format-<n>/directory.json.gz` and `contents.json`, and never replaces
 * one: what a released version wrote stays what it was.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packed, writeGolden } from "../tests/support/golden_directory.ts";
import { readWords } from "./support/arguments.ts";

const [word] = readWords("the number of its format");
const number = Number(word);
if (!Number.isSafeInteger(number) || number < 1) {
  throw new Error("Cannot write a golden directory: name the number of its format");
}
const folder = join(import.meta.dir, `../tests/fixtures/format-${number}`);
if (existsSync(join(folder, "directory.json.gz"))) {
  throw new Error(`Cannot write ${folder}: it is there, and golden directories never change`);
}

const directory = mkdtempSync(join(tmpdir(), "tidemark-golden-"));
try {
  const contents = await writeGolden(directory);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "directory.json.gz"), packed(directory));
  writeFileSync(join(folder, "contents.json"), `${JSON.stringify(contents)}\n`);
} finally {
  for (const path of [directory, `${directory}-elsewhere`]) {
    rmSync(path, { recursive: true, force: true });
  }
}
