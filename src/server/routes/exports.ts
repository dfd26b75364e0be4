/**
 * Serves the archive of a finished EXPORT USER DATA.
 *
 *     GET /v1/exports/{user_id}/{export_id}              with a bearer token, or with the cookie of a
 *                                                        page of this server
 *     GET /v1/exports/{user_id}/{export_id}?access=…     a signed URL, as SHOW EXPORT returns it
 *
 * Users can download only their own archives; the role dba and higher roles can download
 * everyone's.
 */
import { type Auth, exportAccessName } from "../../auth/mod.ts";
import type { ArchiveAccess } from "../../sql/mod.ts";
import type { Exchange } from "../http/exchange.ts";
import { decodedSegments } from "../http/path_segments.ts";
import { invalidInput } from "../http/request_body.ts";
import type { PrefixRoute } from "../http/router.ts";
import { storedFileResponse } from "../http/stored_file.ts";
import { EXPORT_OPERATION } from "../openapi/operations.ts";
import { bearerOrCookiePrincipal } from "./bearer_or_cookie.ts";

export interface ExportRouteOptions {
  readonly auth: Auth;
  readonly exports: ArchiveAccess;
  /** Returns whether the page that sent a request may use its cookies. */
  readonly mayUseCookies: (request: Request) => boolean;
}

export function exportPaths(options: ExportRouteOptions): PrefixRoute {
  return {
    prefix: "/v1/exports/",
    template: "{user_id}/{export_id}",
    method: "GET",
    shape: "B",
    operation: EXPORT_OPERATION,
    handle: (exchange, rest) => archiveResponse(options, exchange, rest),
  };
}

function archiveResponse(options: ExportRouteOptions, exchange: Exchange, path: string): Response {
  const { auth, exports } = options;
  const [userId = "", exportId = "", ...more] = decodedSegments(path, "an export");
  if (userId === "" || exportId === "" || more.length > 0) {
    throw invalidInput("Cannot read an export: the path must be /v1/exports/{user_id}/{export_id}");
  }
  const access = exchange.queryValue("access");
  const principal =
    access === undefined
      ? bearerOrCookiePrincipal(exchange, options)
      : auth.authenticateFileUrl(access, exportAccessName(exportId), exchange);
  const bytes = exports.open(principal, { userId: userId.normalize("NFC"), exportId });
  return storedFileResponse(exchange, {
    bytes,
    size: bytes.size,
    mime: "application/zip",
    tag: exportId,
    disposition: `attachment; filename="${exportId}.zip"`,
  });
}
