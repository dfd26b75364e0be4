/**
 * The path below which a proxy offers the server, such as `/db` of `https://example.com/db/ui`.
 *
 *     server.base_path        for all requests
 *     X-Forwarded-Prefix      of a trusted proxy, for its requests; several proxies each name a part
 *
 * A proxy may take the base path off or leave it on: a path is the same in both forms, because no
 * base path begins like a path of the server itself. Everything that the server names (redirects,
 * cookies, URLs) lies below the base path.
 */
import type { Principal } from "../../auth/mod.ts";
import { isBasePath } from "../../base/base_path.ts";

/**
 * Returns the base path that the header of a proxy names, without a slash at its end; undefined if
 * it names none, or none that the server accepts.
 */
export function basePathFrom(header: string): string | undefined {
  const parts = header.split(",").map((part) => part.trim().replace(/\/$/, ""));
  const path = parts.join("");
  return isBasePath(path) ? path : undefined;
}

/** Returns a caller whose statements name URLs below a base path. */
export function callerBelow(basePath: string, principal: Principal): Principal {
  const { fileUrlKey } = principal;
  if (basePath === "" || fileUrlKey === undefined) return principal;
  return { ...principal, fileUrlKey: { ...fileUrlKey, basePath } };
}

/** Returns a path as the server's routes know it. */
export function pathBelow(basePath: string, path: string): string {
  if (basePath === "" || !path.startsWith(basePath)) return path;
  if (path.length === basePath.length) return "/";
  return path[basePath.length] === "/" ? path.slice(basePath.length) : path;
}
