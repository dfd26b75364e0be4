/**
 * Reads the commands of the examples from their README, so that the tests run exactly what a
 * reader runs.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, SCRIPT_RUNNER } from "./snippets.ts";

/**
 * Returns the words of an example's command, as listed in the table of examples.
 * @throws If the table does not list the example.
 */
export function exampleCommand(example: string): readonly string[] {
  const readme = readFileSync(join(ROOT, "examples/README.md"), "utf8");
  const [, command] =
    new RegExp(`^\\| \\[${example}\\][^|]*\\| \`([^\`]+)\``, "m").exec(readme) ?? [];
  if (command === undefined) throw new Error(`examples/README.md has no command for ${example}`);
  return command.split(" ").map((word) => (word === "node" ? SCRIPT_RUNNER : word));
}
