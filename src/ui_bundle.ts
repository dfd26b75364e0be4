/**
 * Builds the admin page from its sources in `ui`, all in memory: scripts and styles with a hash in
 * their names, and the document that refers to them.
 *
 * A server that runs from its sources uses this when the page is first requested, and so does
 * `scripts/build_ui.ts`. Needs the development packages of `ui`.
 */

/** The whole admin page, in the form in which a build writes it to a file. */
export interface UiPack {
  /**
   * The document. It has {@linkcode NONCE_MARK} in place of the nonce of each response, and
   * {@linkcode BASE_MARK} in place of the path below which the browser reaches the server.
   */
  readonly page: string;
  readonly assets: readonly UiPackAsset[];
}

export interface UiPackAsset {
  /** The path of the file below `/ui/`. */
  readonly path: string;
  readonly type: string;
  readonly text: string;
}

export const NONCE_MARK = "{{nonce}}";

export const BASE_MARK = "{{base}}";

const NAMING = "[name]-[hash].[ext]";

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect " +
  "width='16' height='16' rx='4' fill='%230b6e84'/%3E%3Cpath d='M2 6.5c2-2.5 4-2.5 6 0s4 2.5 6 0M2 " +
  "10.5c2-2.5 4-2.5 6 0s4 2.5 6 0' fill='none' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E";

/**
 * Builds the admin page.
 * @throws {Error} With the bundler's messages if the sources cannot be built.
 */
export async function bundleUi(entry: string): Promise<UiPack> {
  const built = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    minify: true,
    splitting: true,
    naming: { entry: NAMING, chunk: NAMING, asset: NAMING },
    define: { "process.env.NODE_ENV": '"production"' },
    throw: false,
  });
  if (!built.success) throw new Error(built.logs.map(String).join("\n"));
  const assets: UiPackAsset[] = [];
  let script = "";
  for (const output of built.outputs) {
    const path = output.path.replace(/^\.?\//, "");
    assets.push({ path, type: output.type, text: await output.text() });
    if (output.kind === "entry-point") script = path;
  }
  // The entry point's style sheet includes the styles of the chunks that are loaded later.
  const stem = script.slice(0, script.lastIndexOf("-"));
  const style = assets.find(({ path }) => path.startsWith(`${stem}-`) && path.endsWith(".css"));
  if (style === undefined) throw new Error(`the bundle of ${entry} has no style sheet`);
  return { page: pageOf(script, style.path), assets };
}

function pageOf(script: string, style: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tidemark</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${BASE_MARK}/ui/${style}" nonce="${NONCE_MARK}">
<script type="module" src="${BASE_MARK}/ui/${script}"></script>
</head>
<body>
<div id="root"></div>
<noscript>Tidemark's admin page needs JavaScript.</noscript>
</body>
</html>
`;
}
