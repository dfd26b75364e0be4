/**
 * Writes the golden data directory of the current formats, to be kept forever.
 *
 * It creates `tests/fixtures/format-<n>/directory.json.gz` and `contents.json`, and never replaces
 * existing ones: the files of a released version stay as they are.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packed, writeGolden } from "../tests/support/golden_directory.ts";
import { readArguments } from "./support/arguments.ts";

const {
  words: [word],
} = readArguments(
  {},
  { form: "<number>", about: "the number of the format", countMin: 1, countMax: 1 },
);
const number = Number(word);
if (!Number.isSafeInteger(number) || number < 1) {
  throw new Error("Cannot write a golden directory: name the number of its format");
}
const folder = join(import.meta.dir, `../tests/fixtures/format-${number}`);
if (existsSync(join(folder, "directory.json.gz"))) {
  throw new Error(`Cannot write ${folder}: it already exists, and golden directories never change`);
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
