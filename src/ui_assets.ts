/**
 * Finds the admin page, in the first of these places that exists:
 *
 *     1. the executable         one pack, embedded by scripts/build.ts
 *     2. ui/src and its packages  bundled in memory at the first request: nothing to build, never
 *        stale
 *     3. ui/dist/ui.pack        made by scripts/build_ui.ts, for an installation without those
 *        packages
 *
 * The search adds almost no time to startup, and no problem with the page can make the server
 * fail: the problem is logged, and shown in place of the page.
 */
import { join } from "node:path";
import type { Log } from "./base/log.ts";
import { SOURCE_FOLDER } from "./base/sources.ts";
import type { UiAsset, UiAssets } from "./server/mod.ts";
import { BASE_MARK, bundleUi, NONCE_MARK, type UiPack } from "./ui_bundle.ts";

const UI_DIRECTORY = join(SOURCE_FOLDER, "../ui");
const UI_ENTRY = join(UI_DIRECTORY, "src/main.tsx");

/** The path to which `scripts/build_ui.ts` writes the packed admin page. */
export const UI_PACK_PATH: string = join(UI_DIRECTORY, "dist/ui.pack");

/** Matches the name of the embedded pack of the admin page, which includes a hash. */
const EMBEDDED_PACK = /^ui(?:-[a-z0-9]+)?\.pack$/;

const PAGE_FAILED = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tidemark</title></head>
<body>
<h1>Tidemark</h1>
<p>The server is running. The admin page could not be built: its log says why.</p>
</body>
</html>
`;

/**
 * Loads the admin page from the first place that has it.
 * @returns undefined if no place has the page.
 */
export function loadUi(log: Log): UiAssets | undefined {
  const embedded = Bun.embeddedFiles.find((file) => EMBEDDED_PACK.test(nameOf(file)));
  if (embedded !== undefined) return new LazyUi(log, () => readPack(embedded));
  if (hasFile(UI_ENTRY) && hasPackages()) return new LazyUi(log, () => bundleUi(UI_ENTRY));
  if (hasFile(UI_PACK_PATH)) return new LazyUi(log, () => readPack(Bun.file(UI_PACK_PATH)));
  log.debug("the admin page is not built");
  return undefined;
}

/** The admin page, built when it is first requested. */
class LazyUi implements UiAssets {
  readonly #log: Log;
  readonly #make: () => Promise<UiPack>;
  #ready: Promise<ReadyUi | undefined> | undefined;

  constructor(log: Log, make: () => Promise<UiPack>) {
    this.#log = log;
    this.#make = make;
  }

  async get(path: string): Promise<UiAsset | undefined> {
    return (await this.#load())?.assets.get(path);
  }

  async page(nonce: string, basePath: string): Promise<string> {
    const page = (await this.#load())?.page;
    return page?.replaceAll(NONCE_MARK, nonce).replaceAll(BASE_MARK, basePath) ?? PAGE_FAILED;
  }

  #load(): Promise<ReadyUi | undefined> {
    this.#ready ??= this.#make().then(readyFrom, (error: unknown) => {
      this.#log.error("the admin page could not be built", { cause: String(error) });
      // The next request tries to build the page again, so a developer who fixes the sources need
      // not restart the server.
      this.#ready = undefined;
      return undefined;
    });
    return this.#ready;
  }
}

interface ReadyUi {
  readonly page: string;
  readonly assets: ReadonlyMap<string, UiAsset>;
}

function readyFrom({ assets, page }: UiPack): ReadyUi {
  const encoder = new TextEncoder();
  const ready = assets.map(({ path, text, type }): [string, UiAsset] => [
    path,
    { bytes: encoder.encode(text), type, immutable: true },
  ]);
  return { page, assets: new Map(ready) };
}

async function readPack(file: Blob): Promise<UiPack> {
  return JSON.parse(await file.text()) as UiPack;
}

function nameOf(file: Blob): string {
  return "name" in file && typeof file.name === "string" ? file.name : "";
}

function hasFile(path: string): boolean {
  return Bun.file(path).size > 0;
}

/** Whether the development packages of `ui` are installed. */
function hasPackages(): boolean {
  try {
    return Bun.resolveSync("react-dom/client", UI_DIRECTORY) !== "";
  } catch {
    // The resolver reports a missing package only by an error.
    return false;
  }
}
