/**
 * Serves the client to pages from any origin: the module (`/v1/client.js`) and its types
 * (`/v1/client.d.ts`). Neither requires a login, because neither contains data.
 */
import type { ClientAsset, ClientAssets } from "../contract/options.ts";
import { hasTag } from "../http/byte_range.ts";
import type { Exchange } from "../http/exchange.ts";
import { HttpError } from "../http/http_error.ts";
import { bytesResponse, empty, plainHeaders } from "../http/responses.ts";
import type { Route } from "../http/route.ts";
import { CLIENT_OPERATIONS } from "../openapi/asset_operations.ts";

export interface ClientRouteOptions {
  readonly assets: ClientAssets;
  readonly mayCompress: boolean;
}

/**
 * How the client may be cached. After an update, pages get the new version within five minutes.
 * Until then, they need not revalidate their cached version.
 */
const CACHING = "public, max-age=300";

export function clientRoutes({ assets, mayCompress }: ClientRouteOptions): readonly Route[] {
  const answer = async (
    exchange: Exchange,
    asset: ClientAsset | undefined,
    headers: Record<string, string>,
  ): Promise<Response> => {
    if (asset === undefined) {
      throw new HttpError(
        404,
        "not_found",
        "The client could not be bundled; the server's log has the reason",
      );
    }
    // The ETag is weak, because the same text may be sent compressed or uncompressed.
    const tag = `"${asset.tag}"`;
    const common = {
      ETag: `W/${tag}`,
      "Cache-Control": CACHING,
      "Access-Control-Allow-Origin": "*",
      "Cross-Origin-Resource-Policy": "cross-origin",
    };
    if (hasTag(exchange.request.headers.get("if-none-match"), tag)) {
      return empty(exchange, 304, { ...common, ...(mayCompress && { Vary: "Accept-Encoding" }) });
    }
    const { "Content-Type": type = "", ...others } = headers;
    const sent = plainHeaders(type);
    for (const [name, value] of Object.entries({ ...common, ...others })) sent.set(name, value);
    return await bytesResponse(exchange, asset.bytes, { status: 200, headers: sent, mayCompress });
  };
  return [
    {
      path: "/v1/client.js",
      method: "GET",
      shape: "A",
      operation: CLIENT_OPERATIONS.script,
      handle: async (exchange) =>
        await answer(exchange, await assets.script(), {
          "Content-Type": "text/javascript; charset=utf-8",
          // Deno and some editors find the types through this header. The URL is relative to the
          // script, so that a cached response is valid below any base path.
          "X-TypeScript-Types": "./client.d.ts",
        }),
    },
    {
      path: "/v1/client.d.ts",
      method: "GET",
      shape: "A",
      operation: CLIENT_OPERATIONS.types,
      handle: async (exchange) =>
        await answer(exchange, assets.types(), {
          "Content-Type": "application/typescript; charset=utf-8",
        }),
    },
  ];
}
