/** Formats the sources as configured in `biome.json`, and sorts their imports. */
import { readArguments } from "./support/arguments.ts";

const { words } = readArguments(
  {},
  {
    form: "<file, folder or flag> …",
    about: "the arguments of biome check; if no file or folder is given, all sources are formatted",
    countMin: 0,
    arePassedOn: true,
  },
);
const done = Bun.spawnSync(["node_modules/.bin/biome", "check", "--write", ...words], {
  stdout: "inherit",
  stderr: "inherit",
});
process.exitCode = done.exitCode;
