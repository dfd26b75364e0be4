/**
 * Verifies that the environment variables in the image do not override the operator's settings.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { environmentValues } from "../../src/config/environment_variables.ts";
import { KEYS } from "../../src/config/keys.ts";

const text = readFileSync(join(import.meta.dir, "../../Containerfile"), "utf8");
const env = Object.fromEntries(
  [...text.matchAll(/^(?:ENV| {3}) (TIDEMARK_\w+)=(\S+)/gm)].map(([, name, value]) => [
    name,
    value,
  ]),
);

test("Containerfile sets keys by their long names, so that the operator's short names take precedence", () => {
  const set = environmentValues(env, () => "");
  expect([...set.values].map(([path, { value }]) => [path, value])).toEqual([
    ["auth.setup_code", true],
    ["logging.logs_path", "/logs"],
    ["server.host", "0.0.0.0"],
    ["storage.data_path", "/data"],
  ]);
  expect([...set.faults, ...set.warnings]).toEqual([]);
  for (const [path, { variable }] of set.values) {
    expect(KEYS.get(path)?.rule.environment, path).not.toBe(variable);
  }
});

test("Containerfile allows a command after the image name", () => {
  expect(text).toMatch(/^ENTRYPOINT \["\/tidemark"\]\nCMD \["\/config\.toml"\]$/m);
});
