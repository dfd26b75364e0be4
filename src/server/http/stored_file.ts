/**
 * Responds to a request for a stored file: with the whole file, with a range of it, or with status
 * 304 if the caller's copy is up to date.
 */
import { hasTag, type RequestedRange, rangeOf } from "./byte_range.ts";
import type { Exchange } from "./exchange.ts";
import { HttpError } from "./http_error.ts";
import { plainHeaders } from "./responses.ts";

export interface StoredFile {
  readonly bytes: Blob;
  readonly size: number;
  /** The media type of the stored file. */
  readonly mime: string;
  /** The entity tag without quotes. Files with different bytes have different tags. */
  readonly tag: string;
  /** The value of the Content-Disposition header. */
  readonly disposition: string;
}

/**
 * Creates the response that delivers a file, or the requested range of it.
 * @throws {HttpError} RANGE_NOT_SATISFIABLE
 */
export function storedFileResponse(exchange: Exchange, file: StoredFile): Response {
  const { bytes, size } = file;
  const request = exchange.request.headers;
  const tag = `"${file.tag}"`;
  const headers = headersOf(file);
  headers.set("X-Request-ID", exchange.requestId);
  if (hasTag(request.get("if-none-match"), tag)) {
    headers.delete("Content-Type");
    return new Response(null, { status: 304, headers });
  }
  const ifRange = request.get("if-range");
  const rangeHeader = ifRange === null || ifRange === tag ? request.get("range") : null;
  const range = rangeOf(rangeHeader, size);
  if (range === "unsatisfiable") {
    throw new HttpError(
      416,
      "RANGE_NOT_SATISFIABLE",
      `The requested range is outside the file, which has ${size} bytes`,
      {
        contentRange: `bytes */${size}`,
      },
    );
  }
  const isWhole = range === "whole";
  const { first, last }: RequestedRange = isWhole ? { first: 0, last: size - 1 } : range;
  if (!isWhole) headers.set("Content-Range", `bytes ${first}-${last}/${size}`);
  headers.set("Content-Length", String(last - first + 1));
  const body = isWhole ? bytes : bytes.slice(first, last + 1);
  // The body is passed as a stream: if it were passed as a file, the runtime would send the media
  // type of the file on disk instead of the stored one.
  return new Response(body.stream(), { status: isWhole ? 200 : 206, headers });
}

function headersOf({ disposition, mime, tag }: StoredFile): Headers {
  const headers = plainHeaders(mime);
  headers.set("ETag", `"${tag}"`);
  headers.set("Cache-Control", "private, no-cache");
  headers.set("Accept-Ranges", "bytes");
  headers.set("Content-Security-Policy", "sandbox; default-src 'none'");
  headers.set("Content-Disposition", disposition);
  return headers;
}
