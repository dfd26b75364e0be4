/**
 * Serves `/ui`: the admin page and its assets. Every path without an extension gets the same
 * document, in which a script displays the right page.
 */
import type { Random } from "../../base/random.ts";
import type { UiAssets } from "../contract/options.ts";
import type { Exchange } from "../http/exchange.ts";
import { HttpError } from "../http/http_error.ts";
import { bytesResponse, plainHeaders, textResponse } from "../http/responses.ts";

export interface UiRouteOptions {
  /** The built admin page; undefined if it was not built. */
  readonly assets: UiAssets | undefined;
  readonly random: Random;
  readonly mayCompress: boolean;
}

const PAGE_NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tidemark</title></head>
<body>
<h1>Tidemark</h1>
<p>The server is running, without its admin page. Build it with <code>npm run build:ui</code>.</p>
</body>
</html>
`;

/**
 * Responds with the page or an asset.
 * @param name The path after `/ui/`; empty for the page itself.
 */
export async function handleUi(
  exchange: Exchange,
  name: string,
  options: UiRouteOptions,
): Promise<Response> {
  const lastSegment = name.slice(name.lastIndexOf("/") + 1);
  if (!lastSegment.includes(".")) return await page(exchange, options);
  const asset = await options.assets?.get(name);
  if (asset === undefined) throw new HttpError(404, "not_found", `There is no /ui/${name}`);
  const headers = uiHeaders(asset.type, "");
  const caching = asset.immutable ? "public, max-age=31536000, immutable" : "no-cache";
  headers.set("Cache-Control", caching);
  const { mayCompress } = options;
  return await bytesResponse(exchange, asset.bytes, { status: 200, headers, mayCompress });
}

async function page(exchange: Exchange, options: UiRouteOptions): Promise<Response> {
  const nonce = Buffer.from(options.random.bytes(18)).toString("base64");
  const headers = uiHeaders("text/html; charset=utf-8", ` 'nonce-${nonce}'`);
  headers.set("Cache-Control", "no-store");
  const body = (await options.assets?.page(nonce, exchange.basePath)) ?? PAGE_NOT_BUILT;
  return await textResponse(exchange, body, {
    status: 200,
    headers,
    mayCompress: options.mayCompress,
  });
}

function uiHeaders(type: string, styleNonce: string): Headers {
  const headers = plainHeaders(type);
  headers.set(
    "Content-Security-Policy",
    "default-src 'self'; script-src 'self'; " +
      `style-src 'self'${styleNonce}; img-src 'self' data: blob:; connect-src 'self'; ` +
      "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  );
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  return headers;
}
