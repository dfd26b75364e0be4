/**
 * Writes `docs/reference/`, the pages generated from the code: functions, configuration keys,
 * errors, WebSocket messages and statements.
 *
 * With `--check`, the script only compares, so that no page can become outdated.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configurationPage } from "./reference/configuration.ts";
import { errorsPage } from "./reference/errors.ts";
import { functionsPage } from "./reference/functions.ts";
import { messagesPage } from "./reference/messages.ts";
import { statementsPage } from "./reference/statements.ts";
import { flag, readOptions } from "./support/arguments.ts";

const FOLDER: string = join(import.meta.dir, "../docs/reference");

const PAGES: readonly (readonly [name: string, make: () => string | Promise<string>])[] = [
  ["configuration.md", configurationPage],
  ["errors.md", errorsPage],
  ["functions.md", functionsPage],
  ["statements.md", statementsPage],
  ["websocket-messages.md", messagesPage],
];

const options = readOptions({ check: flag("only compares, and exits with 1 if a file is stale") });
for (const [name, make] of PAGES) {
  const made = await make();
  const path = join(FOLDER, name);
  if (!options.check) {
    writeFileSync(path, made);
  } else if (readFileSync(path, "utf8") !== made) {
    process.stdout.write(`${path} is stale: run bun scripts/write_reference.ts\n`);
    process.exitCode = 1;
  }
}
