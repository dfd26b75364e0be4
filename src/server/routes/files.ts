/**
 * Serves the bytes of a FILE cell.
 *
 *     GET /v1/files/{namespace}/{table}/{sub}/{stored_name}  with a bearer token, or with the cookie
 *                                                            of a page of this server
 *     GET /v1/files/{file id}/{any name}?access=…            a signed URL (`auth/file_urls.ts`)
 *
 * If the URL contains `download=1`, a browser saves the file instead of showing it.
 */
import type { Auth } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { FileEntry } from "../../catalog/mod.ts";
import type { FileAccess, FilePath, OpenFile } from "../../sql/mod.ts";
import type { Exchange } from "../http/exchange.ts";
import { HttpError } from "../http/http_error.ts";
import { decodedSegments } from "../http/path_segments.ts";
import { invalidInput } from "../http/request_body.ts";
import { storedFileResponse } from "../http/stored_file.ts";
import { bearerOrCookiePrincipal } from "./bearer_or_cookie.ts";

export interface FileRouteOptions {
  readonly auth: Auth;
  readonly files: FileAccess;
  /** Returns whether the page that sent a request may use its cookies. */
  readonly mayUseCookies: (request: Request) => boolean;
}

const INLINE_TYPES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "application/pdf",
  "text/plain",
]);

/**
 * Responds with a file.
 * @param path The percent-encoded path after the prefix.
 */
export async function fileResponse(
  options: FileRouteOptions,
  exchange: Exchange,
  path: string,
): Promise<Response> {
  const access = exchange.queryValue("access");
  if (access !== undefined) return await signedResponse(options, exchange, { path, access });
  const { auth, files, mayUseCookies } = options;
  const principal = bearerOrCookiePrincipal(exchange, { auth, mayUseCookies });
  const userId = exchange.queryValue("user_id")?.normalize("NFC");
  const filePath = { ...filePathFrom(path), userId };
  return respond(exchange, await files.open(principal, filePath).catch(notThere));
}

/** Responds to a request with a signed URL. Pages from any origin may show the file. */
async function signedResponse(
  { auth, files }: FileRouteOptions,
  exchange: Exchange,
  { access, path }: { access: string; path: string },
): Promise<Response> {
  const segments = decodedSegments(path, "a file");
  const [fileId = ""] = segments;
  if (segments.length > 2 || !/^\d{1,16}$/.test(fileId)) {
    throw invalidInput(
      "Cannot read a file: the path must be /v1/files/{id}/{name}, as returned by FILE_URL",
    );
  }
  const principal = auth.authenticateFileUrl(access, fileId, exchange);
  const response = respond(exchange, await files.openById(principal, fileId));
  response.headers.set("Cross-Origin-Resource-Policy", "cross-origin");
  return response;
}

/**
 * Translates TABLE_NOT_FOUND. In a statement, the name of an unknown table is a mistake, but here
 * it only means that the path does not exist.
 */
function notThere(error: unknown): never {
  if (!(error instanceof DatabaseError) || error.code !== "TABLE_NOT_FOUND") throw error;
  throw new HttpError(404, error.code, error.message);
}

/**
 * Parses the path of a file URL.
 * @throws {DatabaseError} INVALID_INPUT
 */
function filePathFrom(path: string): Omit<FilePath, "userId"> {
  const segments = decodedSegments(path, "a file");
  const [namespace = "", table = "", sub = "", storedName = ""] = segments;
  const isComplete = segments.length === 4 && segments.every((segment) => segment !== "");
  if (!isComplete || !/^f\d{4,}$/.test(sub)) {
    throw invalidInput(
      "Cannot read a file: the path must be /v1/files/{namespace}/{table}/{sub}/{name}",
    );
  }
  return { namespace, table, sub, storedName };
}

function respond(exchange: Exchange, { bytes, entry }: OpenFile): Response {
  const isDownload = exchange.queryValue("download") === "1";
  return storedFileResponse(exchange, {
    bytes,
    size: entry.size,
    mime: entry.mime,
    tag: entry.sha256,
    disposition: dispositionOf(entry, isDownload),
  });
}

/** Content is displayed inline only if a browser cannot run it as a page of this server. */
function dispositionOf({ mime, name }: FileEntry, isDownload: boolean): string {
  const isHarmless = INLINE_TYPES.has(mime) || /^(?:audio|video)\//.test(mime);
  const isInline = isHarmless && !isDownload;
  const ascii = name.replaceAll(/[^\x20-\x7e]/g, "_").replaceAll(/["\\%]/g, "_");
  const utf8 = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const kind = isInline ? "inline" : "attachment";
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${utf8}`;
}
