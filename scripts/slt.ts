/**
 * Runs sqllogictest files against a server that it starts, and prints the failures and the pending
 * cases.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { startReadyServer } from "../tests/support/server_process.ts";
import { runSltOn } from "../tests/support/slt_server.ts";
import { readArguments } from "./support/arguments.ts";

const FAILURES_SHOWN = 5;

const { words } = readArguments(
  {},
  { form: "<file or directory> …", about: "a file or a directory", countMin: 1 },
);
const files = words.flatMap((path) => {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test") || name.endsWith(".slt"))
    .map((name) => join(path, name));
});
if (files.length === 0) throw new Error("Cannot run cases: no given file ends in .test or .slt");

let failedCount = 0;
await using server = await startReadyServer();
for (const [index, file] of files.entries()) {
  const text = await Bun.file(file).text();
  const { passedCount, waiting, failures } = await runSltOn(server, `slt${index}`, text);
  failedCount += failures.length;
  process.stdout.write(
    `${file}: ${passedCount} passed, ${failures.length} failed, ${waiting.length} waiting\n`,
  );
  for (const { line, sql, reason } of failures.slice(0, FAILURES_SHOWN)) {
    process.stdout.write(`  line ${line}: ${sql}\n    ${reason}\n`);
  }
}
process.exitCode = failedCount === 0 ? 0 : 1;
