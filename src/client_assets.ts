/**
 * Provides the client to users who do not install the package. The server delivers it to them as a
 * single script with its types.
 *
 * The script is embedded in the executable by `scripts/build.ts`. A server running from source
 * bundles it from `src/client` at the first request, for which no additional packages are needed.
 * The types are in a file written by `scripts/write_client_types.ts`, because generating them
 * requires a compiler.
 */
import { join } from "node:path";
import type { Log } from "./base/log.ts";
import { SOURCE_FOLDER } from "./base/sources.ts";
// Bundlers and the runtime import this file as text.
import types from "./client_types.txt" with { type: "text" };
import type { ClientAsset, ClientAssets } from "./server/mod.ts";

/**
 * The path to which `scripts/build.ts` writes the script before embedding it in the executable.
 */
export const CLIENT_PACK_PATH: string = join(SOURCE_FOLDER, "../ui/dist/client.pack");

/** Matches the name of the embedded script, which may contain a hash. */
const EMBEDDED_PACK = /^client(?:-[a-z0-9]+)?\.pack$/;

/**
 * Bundles the client into a single JavaScript module.
 * @throws {Error} With the bundler's messages, if the sources cannot be bundled.
 */
export async function bundleClient(): Promise<string> {
  const built = await Bun.build({
    entrypoints: [join(SOURCE_FOLDER, "client/mod.ts")],
    target: "browser",
    format: "esm",
    // Line breaks are kept, because Node prints the line in which an uncaught error occurred.
    minify: { identifiers: true, syntax: true },
    throw: false,
  });
  const [script] = built.outputs;
  if (!built.success || script === undefined) throw new Error(built.logs.map(String).join("\n"));
  return await script.text();
}

export function loadClient(log: Log): ClientAssets {
  let script: Promise<ClientAsset | undefined> | undefined;
  const made = assetFrom(types);
  return {
    types: () => made,
    script() {
      script ??= scriptText().then(assetFrom, (error: unknown) => {
        log.error("the client could not be bundled", { cause: String(error) });
        // The next request tries again, so that a developer who fixes the sources need not restart
        // the server.
        script = undefined;
        return undefined;
      });
      return script;
    },
  };
}

async function scriptText(): Promise<string> {
  const embedded = Bun.embeddedFiles.find(
    (file) => "name" in file && typeof file.name === "string" && EMBEDDED_PACK.test(file.name),
  );
  return embedded === undefined ? await bundleClient() : await embedded.text();
}

function assetFrom(text: string): ClientAsset {
  const tag = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  return { bytes: new TextEncoder().encode(text), tag };
}
