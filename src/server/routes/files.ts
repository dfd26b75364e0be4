/**
 * `GET /v1/files/{namespace}/{table}/{sub}/{stored_name}`: the bytes behind a FILE cell.
 *
 * A file is found by its id in the catalog; the path must agree with what is stored there, and a
 * row must still name it. Whose files are looked at follows from the caller, never from the path.
 * The bytes are checked against their checksum once, before any of them leaves.
 */
import { type Auth, mayRead, mayReadFilesOf, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  type FileEntry,
  isSystemNamespace,
  type TableEntry,
} from "../../catalog/mod.ts";
import { type BlobStore, SHARED_OWNER } from "../../storage/mod.ts";
import { type ByteRange, hasTag, rangeOf } from "../byte_range.ts";
import type { Exchange } from "../exchange.ts";
import { HttpError } from "../http_error.ts";
import { invalidInput } from "../request_body.ts";
import { plainHeaders } from "../responses.ts";

export interface FileRouteOptions {
  readonly auth: Auth;
  readonly catalog: Catalog;
  readonly blobs: BlobStore;
  readonly fileIsLive: (entry: FileEntry) => boolean;
}

/** Files whose checksum held since the start: enough for every file in use. */
const VERIFIED_COUNT_MAX = 65536;

const INLINE_TYPES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "application/pdf",
  "text/plain",
]);

interface FilePath {
  readonly namespace: string;
  readonly table: string;
  readonly sub: string;
  readonly storedName: string;
}

export class FileRoute {
  readonly #options: FileRouteOptions;
  readonly #verified = new Set<string>();

  constructor(options: FileRouteOptions) {
    this.#options = options;
  }

  /** `path` is what follows the prefix, percent-encoded. */
  async handle(exchange: Exchange, path: string): Promise<Response> {
    const { auth, blobs } = this.#options;
    const { headers } = exchange.request;
    const principal = auth.authenticateHeader(headers.get("authorization"), exchange);
    const filePath = filePathFrom(path);
    const table = this.#table(filePath);
    const owner = this.#owner(table, principal, exchange.queryValue("user_id"));
    const entry = this.#entry(filePath, table, owner);
    const { tableId, sub, storedName } = entry;
    const location = blobs.locate({ tableId, owner: entry.owner, sub, storedName });
    if (location === undefined) throw damaged(entry, "its bytes are missing");
    await this.#verify(entry, location);
    return respond(exchange, entry, location);
  }

  #table({ namespace, table: name }: FilePath): TableEntry {
    if (isSystemNamespace(namespace)) {
      throw invalidInput(`Cannot read a file of ${namespace}.${name}: it is a system table`);
    }
    const table = this.#options.catalog.table(namespace, name);
    if (table === undefined) {
      throw new HttpError(404, "TABLE_NOT_FOUND", `Table ${namespace}.${name} not found`);
    }
    if (table.kind === "stream") {
      throw invalidInput(`Cannot read a file of ${namespace}.${name}: it is a STREAM table`);
    }
    return table;
  }

  /** Whose rows hold the file; undefined when that user never had any. */
  #owner(table: TableEntry, principal: Principal, userId: string | undefined): number | undefined {
    const { catalog } = this.#options;
    const name = `${table.namespace}.${table.name}`;
    if (table.kind === "shared") {
      if (userId !== undefined) throw invalidInput(`Table ${name} is SHARED: it has no user_id`);
      if (!mayRead(principal, table, catalog.namespace(table.namespace))) {
        throw new DatabaseError("PERMISSION_DENIED", `Cannot read table ${name}`);
      }
      return SHARED_OWNER;
    }
    if (userId === undefined || userId === principal.userId) return principal.owner;
    if (!mayReadFilesOf(principal, userId)) {
      throw new DatabaseError(
        "PERMISSION_DENIED",
        `Cannot read files of another user in ${name}: it takes role dba or system`,
      );
    }
    return catalog.ownerNumber(userId);
  }

  #entry(path: FilePath, table: TableEntry, owner: number | undefined): FileEntry {
    const { catalog, fileIsLive } = this.#options;
    const fileId = /^\d{1,16}/.exec(path.storedName)?.[0];
    const entry = fileId === undefined ? undefined : catalog.file(fileId);
    const isWanted =
      entry !== undefined &&
      entry.tableId === table.tableId &&
      entry.owner === owner &&
      entry.sub === path.sub &&
      (entry.storedName === path.storedName || entry.fileId === path.storedName) &&
      fileIsLive(entry);
    if (isWanted) return entry;
    throw new DatabaseError(
      "FILE_NOT_FOUND",
      `File ${path.sub}/${path.storedName} not found in ${table.namespace}.${table.name}`,
    );
  }

  /** @throws {DatabaseError} DATA_DAMAGED */
  async #verify(entry: FileEntry, location: string): Promise<void> {
    if (this.#verified.has(entry.fileId)) return;
    const hasher = new Bun.CryptoHasher("sha256");
    let size = 0;
    try {
      for await (const piece of Bun.file(location).stream()) {
        hasher.update(piece);
        size += piece.length;
      }
    } catch (error) {
      // The system says why: the file is unreadable, or went away after it was found.
      throw damaged(entry, `its bytes cannot be read (${String(error)})`);
    }
    if (size !== entry.size) throw damaged(entry, `it has ${size} bytes, not ${entry.size}`);
    if (hasher.digest("hex") !== entry.sha256) throw damaged(entry, "its checksum does not match");
    if (this.#verified.size >= VERIFIED_COUNT_MAX) this.#verified.clear();
    this.#verified.add(entry.fileId);
  }
}

/** @throws {DatabaseError} INVALID_INPUT */
function filePathFrom(path: string): FilePath {
  const segments = path.split("/").map(decodedSegment);
  const [namespace = "", table = "", sub = "", storedName = ""] = segments;
  const isComplete = segments.length === 4 && segments.every((segment) => segment !== "");
  if (!isComplete || !/^f\d{4,}$/.test(sub)) {
    throw invalidInput("Cannot read a file: expected /v1/files/{namespace}/{table}/{sub}/{name}");
  }
  return { namespace, table, sub, storedName };
}

function decodedSegment(segment: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    // A URIError means malformed percent-encoding, which is the caller's.
    throw invalidInput("Cannot read a file: its path is not percent-encoded UTF-8");
  }
  if (decoded === ".." || /[/\\\0]/.test(decoded)) {
    throw invalidInput("Cannot read a file: its path holds a forbidden segment");
  }
  return decoded;
}

function respond(exchange: Exchange, entry: FileEntry, location: string): Response {
  const request = exchange.request.headers;
  const tag = `"${entry.sha256}"`;
  const headers = fileHeaders(entry, tag);
  headers.set("X-Request-ID", exchange.requestId);
  if (hasTag(request.get("if-none-match"), tag)) {
    headers.delete("Content-Type");
    return new Response(null, { status: 304, headers });
  }
  const ifRange = request.get("if-range");
  const rangeHeader = ifRange === null || ifRange === tag ? request.get("range") : null;
  const range = rangeOf(rangeHeader, entry.size);
  if (range === "unsatisfiable") {
    throw new HttpError(416, "RANGE_NOT_SATISFIABLE", `The file has ${entry.size} bytes`, {
      contentRange: `bytes */${entry.size}`,
    });
  }
  const isWhole = range === "whole";
  const { first, last }: ByteRange = isWhole ? { first: 0, last: entry.size - 1 } : range;
  if (!isWhole) headers.set("Content-Range", `bytes ${first}-${last}/${entry.size}`);
  const status = isWhole ? 200 : 206;
  const file = Bun.file(location);
  const body = isWhole ? file : file.slice(first, last + 1);
  // The runtime would give the file's own type; ours is the stored one.
  return new Response(body.stream(), {
    status,
    headers: withLength(headers, last - first + 1),
  });
}

function withLength(headers: Headers, length: number): Headers {
  headers.set("Content-Length", String(length));
  return headers;
}

function fileHeaders(entry: FileEntry, tag: string): Headers {
  const headers = plainHeaders(entry.mime);
  headers.set("ETag", tag);
  headers.set("Cache-Control", "private, no-cache");
  headers.set("Accept-Ranges", "bytes");
  headers.set("Content-Security-Policy", "sandbox; default-src 'none'");
  headers.set("Content-Disposition", dispositionOf(entry));
  return headers;
}

/** Only what a browser cannot run as a page of this server is shown in place. */
function dispositionOf({ mime, name }: FileEntry): string {
  const isInline = INLINE_TYPES.has(mime) || /^(?:audio|video)\//.test(mime);
  const ascii = name.replaceAll(/[^\x20-\x7e]/g, "_").replaceAll(/["\\%]/g, "_");
  const utf8 = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const kind = isInline ? "inline" : "attachment";
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${utf8}`;
}

function damaged({ fileId, name }: FileEntry, what: string): DatabaseError {
  return new DatabaseError("DATA_DAMAGED", `Cannot read file ${fileId} ("${name}"): ${what}`);
}
