/**
 * Builds the admin page into a single file, `ui/dist/ui.pack`. The executable embeds this file,
 * and installations without the development packages use it. A server that runs from source with
 * the development packages needs no build.
 */
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { UI_PACK_PATH } from "../src/ui_assets.ts";
import { bundleUi } from "../src/ui_bundle.ts";
import { readOptions } from "./support/arguments.ts";

readOptions({});

const pack = await bundleUi(join(import.meta.dir, "../ui/src/main.tsx"));
mkdirSync(dirname(UI_PACK_PATH), { recursive: true });
await Bun.write(UI_PACK_PATH, JSON.stringify(pack));
for (const { path, text } of pack.assets) {
  const bytes = new TextEncoder().encode(text);
  const packed = Bun.gzipSync(bytes).length;
  process.stdout.write(`${path}  ${kilobytes(bytes.length)}, ${kilobytes(packed)} with gzip\n`);
}
process.stdout.write(`${UI_PACK_PATH}\n`);

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`;
}
