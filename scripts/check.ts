/**
 * Runs every check and prints a line for each. Developers run it before a commit.
 *
 * The text checks run in parallel. The tests run after them, on their own, because some of them
 * measure time. Exits with 1 if any check fails, but only after all checks have run.
 */
import { existsSync } from "node:fs";
import { flag, readOptions } from "./support/arguments.ts";

interface Check {
  readonly name: string;
  readonly command: readonly string[];
}

/**
 * The checks use the same Bun executable as this script, so that a machine needs no global Bun.
 */
const BUN = process.execPath;
const PATHS = ["src", "tests", "scripts", "ui/src"];

const TEXT_CHECKS: readonly Check[] = [
  { name: "types", command: ["tsc", "-p", "."] },
  ...(existsSync("ui/tsconfig.json") ? [{ name: "ui types", command: ["tsc", "-p", "ui"] }] : []),
  { name: "format", command: ["biome", "check"] },
  { name: "lint", command: ["oxlint", "--type-aware", ...PATHS] },
  { name: "client types", command: [BUN, "scripts/write_client_types.ts", "--check"] },
  { name: "reference", command: [BUN, "scripts/write_reference.ts", "--check"] },
  { name: "layers", command: [BUN, "scripts/check/layers.ts"] },
  { name: "tidy", command: [BUN, "scripts/check/tidy.ts"] },
  { name: "paths", command: [BUN, "scripts/check/paths.ts"] },
  { name: "language", command: [BUN, "scripts/check/language.ts"] },
  { name: "links", command: [BUN, "scripts/check/links.ts"] },
  { name: "unused", command: ["knip-bun"] },
];

const TESTS: Check = { name: "tests", command: [BUN, "scripts/test.ts"] };

/**
 * Runs a check and prints its result, followed by its output if it failed. Returns whether it
 * passed.
 */
async function passes({ name, command }: Check): Promise<boolean> {
  const startNs = Bun.nanoseconds();
  const child = Bun.spawn([...command], {
    env: { ...process.env, PATH: `node_modules/.bin:${process.env["PATH"] ?? ""}` },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const seconds = ((Bun.nanoseconds() - startNs) / 1e9).toFixed(1);
  process.stdout.write(`${code === 0 ? "ok    " : "FAILED"}  ${name} (${seconds} s)\n`);
  if (code !== 0) process.stdout.write(`${output}${errors}\n`);
  return code === 0;
}

const options = readOptions({ "no-tests": flag("omits the tests") });
const outcomes = await Promise.all(TEXT_CHECKS.map((check) => passes(check)));
if (!options["no-tests"]) outcomes.push(await passes(TESTS));
process.exitCode = outcomes.every((passed) => passed) ? 0 : 1;
