/**
 * Installs peer databases from npm into a separate folder outside the project, and imports them.
 * The folder is kept, so that the next run need not install them again.
 */
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FOLDER = join(tmpdir(), "tidemark-bench-peers");

/** Installs a package, unless an earlier run has installed it. */
export function installPeer(name: string): void {
  if (existsSync(join(FOLDER, "node_modules", name))) return;
  mkdirSync(FOLDER, { recursive: true });
  const added = Bun.spawnSync([process.execPath, "add", "--cwd", FOLDER, name], { cwd: FOLDER });
  if (!added.success) throw new Error(`Cannot install ${name}: ${added.stderr.toString()}`);
}

/**
 * Imports an installed package.
 * @param subpath The module to import, unless it is the package's main module.
 */
export async function importPeer(name: string, subpath?: string): Promise<unknown> {
  const path = subpath === undefined ? name : `${name}/${subpath}`;
  return (await import(Bun.resolveSync(path, FOLDER))) as unknown;
}
