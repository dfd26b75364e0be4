/** Verifies that the program interprets every command-line argument correctly and ignores none. */
import { expect, test } from "bun:test";
import { commandFrom, helpText, type Program } from "../src/command_line.ts";

const SOURCE: Program = {
  version: "1.2.3",
  isExecutable: false,
  isThere: (path) => path === "settings",
};
const EXECUTABLE: Program = { ...SOURCE, isExecutable: true };

test.each([
  [["config.toml"], { kind: "serve", path: "config.toml" }],
  [["settings"], { kind: "serve", path: "settings" }],
  [["./nowhere"], { kind: "serve", path: "./nowhere" }],
  [["--check", "config.toml"], { kind: "check", path: "config.toml" }],
  [["config.toml", "--check"], { kind: "check", path: "config.toml" }],
  [["--help"], { kind: "help" }],
  [["-h"], { kind: "help" }],
  [["--version"], { kind: "version" }],
  [["-v"], { kind: "version" }],
  [["verify", "data", "--all"], { kind: "verify", args: ["data", "--all"] }],
  [["repair"], { kind: "repair", args: [] }],
  [["restore", "a", "b"], { kind: "restore", args: ["a", "b"] }],
] as const)("commandFrom reads %j", (args, command) => {
  expect(commandFrom(args, SOURCE)).toEqual(command);
});

test.each([
  [["config.toml", "other.toml"], 'unexpected argument "other.toml"'],
  [["--check", "config.toml", "extra"], 'unexpected argument "extra"'],
  [["config.toml", "--check", "--check"], 'unexpected argument "--check"'],
  [["--help", "x"], 'unexpected argument "x"'],
  [["--version", "config.toml"], 'unexpected argument "config.toml"'],
  [["--check"], "--check requires a configuration file"],
  [["config.toml", "--chekc"], "unknown option --chekc"],
  [
    ["sql"],
    '"sql" is neither a command nor an existing file; the commands are verify, repair and restore',
  ],
  [
    ["backup", "./data"],
    '"backup" is neither a command nor an existing file; the commands are verify, repair and restore',
  ],
  [["settings", "./data"], 'unexpected argument "./data"'],
] as const)("commandFrom refuses %j, prints the help and exits with code 2", (args, what) => {
  expect(commandFrom(args, SOURCE)).toEqual({
    kind: "refused",
    message: `Cannot start Tidemark: ${what}\n\n${helpText(SOURCE).trimEnd()}`,
    exitCode: 2,
  });
});

test("commandFrom requires a configuration file, and refuses to start without one", () => {
  const refused = (program: Program): unknown => commandFrom([], program);
  // A shell passes an empty argument for a variable that is not set.
  expect(commandFrom([""], SOURCE)).toEqual(commandFrom([], SOURCE));
  const message = "Cannot start Tidemark: specify a configuration file, e.g.";
  expect(refused(SOURCE)).toEqual({
    kind: "refused",
    message: `${message} npm start config.toml`,
    exitCode: 1,
  });
  expect(refused(EXECUTABLE)).toMatchObject({ message: `${message} tidemark config.toml` });
});

test("helpText names the command by which the program was started", () => {
  const source = helpText(SOURCE);
  expect(source).toContain("\n  npm start config.toml           start the server");
  expect(source).toContain("\n  npm start -- --check <file>     check a configuration");
  expect(source).toContain("With Bun: bun run start config.toml");
  const executable = helpText(EXECUTABLE);
  expect(executable).toContain("\n  tidemark config.toml            start the server");
  expect(executable).toContain("\n  tidemark restore <backup> <data_path>");
  expect(executable).not.toMatch(/npm|bun/i);
  for (const line of `${source}${executable}`.split("\n")) expect(line.length).toBeLessThan(101);
});
