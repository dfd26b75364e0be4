/**
 * Writes `src/client_types.txt`, the declarations that the server provides at `/v1/client.d.ts`.
 * They are the compiler's declarations for `src/client` in a single file, without names that users
 * cannot access.
 *
 * With `--check`, the script only compares, so that the file cannot become outdated. The file is
 * checked in rather than generated when the server starts, because an installation has no
 * compiler.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flag, readOptions } from "./support/arguments.ts";
import { bundleDeclarations } from "./support/declarations.ts";

const ROOT: string = join(import.meta.dir, "..");
const ENTRY = "client/mod";
const TARGET: string = join(ROOT, "src/client_types.txt");

const options = readOptions({
  check: flag("only compares, and exits with 1 if the file is stale"),
});
const made = bundleDeclarations(ENTRY, emitted());
if (!options.check) {
  writeFileSync(TARGET, made);
} else if (readFileSync(TARGET, "utf8") !== made) {
  process.stdout.write(`${TARGET} is behind src/client: run bun scripts/write_client_types.ts\n`);
  process.exitCode = 1;
}

/**
 * Compiles the client. Returns a function that returns the compiler's declarations of a module,
 * given its path without an extension.
 */
function emitted(): (path: string) => string {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-declarations-"));
  try {
    const compilerOptions = {
      declaration: true,
      emitDeclarationOnly: true,
      noEmit: false,
      stripInternal: true,
      lib: ["ES2023", "DOM"],
      types: [],
      rootDir: join(ROOT, "src"),
      outDir: folder,
    };
    const project = join(folder, "tsconfig.json");
    const files = [join(ROOT, `src/${ENTRY}.ts`)];
    const base = join(ROOT, "tsconfig.json");
    writeFileSync(project, JSON.stringify({ extends: base, compilerOptions, files, include: [] }));
    const { exitCode, stdout } = Bun.spawnSync(["node_modules/.bin/tsc", "-p", project], {
      cwd: ROOT,
    });
    if (exitCode !== 0) throw new Error(`Cannot emit declarations: ${stdout.toString()}`);
    const texts = new Map<string, string>();
    for (const path of new Bun.Glob("**/*.d.ts").scanSync(folder)) {
      texts.set(path.slice(0, -".d.ts".length), readFileSync(join(folder, path), "utf8"));
    }
    return (path) => {
      const text = texts.get(path);
      if (text === undefined) throw new Error(`Cannot find the declarations of ${path}`);
      return text;
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
