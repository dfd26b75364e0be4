/**
 * Installs a peer from npm into a separate folder outside the project, and imports it. The folder
 * is kept, so that the next run need not install the peer again.
 */
import { existsSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FOLDER = join(tmpdir(), "tidemark-bench-peers");

/**
 * Installs a package in a temporary folder, and imports it.
 * @param subpath A module of the package other than the main one.
 */
export async function importPeer(name: string, subpath?: string): Promise<unknown> {
  const installed = join(FOLDER, "node_modules", name);
  if (!existsSync(installed)) {
    mkdirSync(FOLDER, { recursive: true });
    const added = Bun.spawnSync([process.execPath, "add", "--cwd", FOLDER, name], { cwd: FOLDER });
    if (!added.success) throw new Error(`Cannot install ${name}: ${added.stderr.toString()}`);
  }
  const path = subpath === undefined ? name : `${name}/${subpath}`;
  return (await import(Bun.resolveSync(path, FOLDER))) as unknown;
}
