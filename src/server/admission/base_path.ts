/**
 * Handles the base path: the path below which a proxy exposes the server, such as `/db` in
 * `https://example.com/db/ui`.
 *
 *     server.base_path        for all requests
 *     X-Forwarded-Prefix      of a trusted proxy, for its requests; several proxies each name a part
 *
 * A proxy may strip the base path from requests or keep it. The server accepts both forms, because
 * no base path begins like one of its own paths. Redirects, cookies and URLs produced by the
 * server include the base path.
 */
import type { Principal } from "../../auth/mod.ts";
import { isBasePath } from "../../base/base_path.ts";

/**
 * Returns the base path named in a proxy's header, without a trailing slash; undefined if the
 * header names no base path that the server accepts.
 */
export function basePathFrom(header: string): string | undefined {
  const parts = header.split(",").map((part) => part.trim().replace(/\/$/, ""));
  const path = parts.join("");
  return isBasePath(path) ? path : undefined;
}

/**
 * Returns a copy of the caller with a base path, which URLs in the results of the caller's
 * statements include.
 */
export function callerBelow(basePath: string, principal: Principal): Principal {
  const { fileUrlKey } = principal;
  if (basePath === "" || fileUrlKey === undefined) return principal;
  return { ...principal, fileUrlKey: { ...fileUrlKey, basePath } };
}

/** Strips the base path from a request path, as the server's routes expect. */
export function pathBelow(basePath: string, path: string): string {
  if (basePath === "" || !path.startsWith(basePath)) return path;
  if (path.length === basePath.length) return "/";
  return path[basePath.length] === "/" ? path.slice(basePath.length) : path;
}
