/**
 * multipart/form-data (RFC 7578), as uploads use it: text fields, and file parts named `file:x`.
 *
 *     --boundary CRLF
 *     header lines, each ended by CRLF; at most 8 KiB
 *     CRLF
 *     content
 *     CRLF --boundary CRLF     the next part
 *     CRLF --boundary--        the end
 *
 * File parts alias the body: nothing is copied.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { UploadedFile } from "../../sql/mod.ts";
import { isMimeAllowed, mimeOfUpload } from "./mime.ts";
import { invalidInput, mediaType, textFromUtf8 } from "./request_body.ts";

/** Headers of one part: a name, a file name and a type need far less. */
const PART_HEADER_BYTES_MAX = 8192;

/** Parts of one request besides files: every known field once, and room for unknown ones. */
const FIELDS_MAX = 32;

const FILE_PREFIX = "file:";

export interface MultipartLimits {
  readonly max_size_bytes: number;
  readonly max_files_per_request: number;
  readonly allowed_mime_types: readonly string[];
}

export interface MultipartForm {
  /** Text fields by name. */
  readonly fields: ReadonlyMap<string, string>;
  /** File parts by placeholder name, without the `file:` prefix. */
  readonly files: ReadonlyMap<string, UploadedFile>;
}

/** Whether a Content-Type announces a form. */
export function isMultipart(contentType: string | null): contentType is string {
  // Nearly every body is JSON, and is asked about twice.
  if (contentType === null || contentType === "application/json") return false;
  return mediaType(contentType) === "multipart/form-data";
}

/**
 * Splits a form into its parts.
 *
 * @throws {DatabaseError} INVALID_INPUT if it is malformed; FILE_TOO_LARGE, TOO_MANY_FILES,
 * INVALID_MIME_TYPE for a file part.
 */
export function parseMultipart(
  body: Uint8Array,
  contentType: string,
  limits: MultipartLimits,
): MultipartForm {
  const fields = new Map<string, string>();
  const files = new Map<string, UploadedFile>();
  for (const part of partsOf(body, contentType)) {
    const isFile = part.name.startsWith(FILE_PREFIX);
    const key = isFile ? part.name.slice(FILE_PREFIX.length) : part.name;
    if ((isFile ? files : fields).has(key)) {
      throw invalidInput(`Cannot read the form: part "${part.name}" occurs twice`);
    }
    if (isFile) {
      if (files.size >= limits.max_files_per_request) {
        throw new DatabaseError(
          "TOO_MANY_FILES",
          `Cannot upload more than ${limits.max_files_per_request} files in one request`,
        );
      }
      files.set(key, fileFromPart(key, part, limits));
    } else {
      if (fields.size >= FIELDS_MAX) throw invalidInput("Cannot read the form: too many parts");
      const text = textFromUtf8(part.content);
      if (text === undefined) {
        const rule = `a file is a part named "${FILE_PREFIX}${part.name}"`;
        const what = part.fileName === undefined ? "" : `, and ${rule}`;
        throw invalidInput(`Cannot read the form: part "${part.name}" is not UTF-8${what}`);
      }
      fields.set(key, text);
    }
  }
  return { fields, files };
}

interface Part {
  readonly name: string;
  readonly fileName: string | undefined;
  readonly contentType: string | undefined;
  readonly content: Uint8Array;
}

function fileFromPart(placeholder: string, part: Part, limits: MultipartLimits): UploadedFile {
  const { content } = part;
  if (content.length > limits.max_size_bytes) {
    throw new DatabaseError(
      "FILE_TOO_LARGE",
      `Cannot upload "${placeholder}": it has ${content.length} bytes, and at most ` +
        `${limits.max_size_bytes} are allowed`,
    );
  }
  const name = part.fileName === undefined || part.fileName === "" ? placeholder : part.fileName;
  const mime = mimeOfUpload(part.contentType, { name, bytes: content });
  if (!isMimeAllowed(mime, limits.allowed_mime_types)) {
    throw new DatabaseError(
      "INVALID_MIME_TYPE",
      `Cannot upload "${placeholder}": its media type "${mime}" is not allowed`,
    );
  }
  return { name, mime, bytes: content };
}

function* partsOf(body: Uint8Array, contentType: string): Generator<Part> {
  const delimiter = Buffer.from(`--${boundaryOf(contentType)}`, "latin1");
  const separator = Buffer.concat([Buffer.from("\r\n"), delimiter]);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // What stands before the first delimiter is a preamble that nobody reads.
  let offset = bytes.indexOf(delimiter);
  if (offset < 0) throw malformed("the boundary is missing");
  offset += delimiter.length;
  for (;;) {
    if (bytes.toString("latin1", offset, offset + 2) === "--") return;
    offset = afterLineEnd(bytes, offset);
    const headersEnd = bytes.indexOf("\r\n\r\n", Math.max(0, offset - 2), "latin1");
    if (headersEnd < 0) throw malformed("a part has no end of its headers");
    if (headersEnd - offset > PART_HEADER_BYTES_MAX) {
      throw malformed(`the headers of a part exceed ${PART_HEADER_BYTES_MAX} bytes`);
    }
    const contentStart = headersEnd + 4;
    const contentEnd = bytes.indexOf(separator, contentStart);
    if (contentEnd < 0) throw malformed("the closing boundary is missing");
    const headerText = textFromUtf8(bytes.subarray(offset, Math.max(offset, headersEnd)));
    if (headerText === undefined) throw malformed("the headers of a part are not UTF-8");
    yield partFrom(headerText, bytes.subarray(contentStart, contentEnd));
    offset = contentEnd + separator.length;
  }
}

/** Skips white space after a delimiter, and its line end. */
function afterLineEnd(bytes: Buffer, start: number): number {
  let offset = start;
  while (bytes[offset] === 0x20 || bytes[offset] === 0x09) offset += 1;
  if (bytes[offset] !== 0x0d || bytes[offset + 1] !== 0x0a) {
    throw malformed("a boundary is not followed by a line end");
  }
  return offset + 2;
}

function partFrom(headerText: string, content: Buffer): Part {
  let disposition: string | undefined;
  let contentType: string | undefined;
  for (const line of headerText.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon < 0) continue;
    const name = line.slice(0, colon).trim().toLowerCase();
    if (name === "content-disposition") disposition = line.slice(colon + 1).trim();
    else if (name === "content-type") contentType = mediaType(line.slice(colon + 1));
  }
  if (disposition === undefined || !/^form-data\s*(?:;|$)/i.test(disposition)) {
    throw malformed("a part has no form-data disposition");
  }
  const name = parameterOf(disposition, "name");
  if (name === undefined || name === "") throw malformed("a part has no name");
  return { name, fileName: fileNameOf(disposition), contentType, content };
}

/** The original name of a file: the extended form wins, a path is cut to its last segment. */
function fileNameOf(disposition: string): string | undefined {
  const extended = /;\s*filename\*\s*=\s*utf-8''([^;\s]+)/i.exec(disposition)?.[1];
  const name =
    extended === undefined ? parameterOf(disposition, "filename") : decodePercent(extended);
  return name?.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("\\")) + 1);
}

function decodePercent(text: string): string {
  const bytes = Buffer.from(
    text.replaceAll(/%([0-9a-fA-F]{2})/g, (_match, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
    "latin1",
  );
  const decoded = textFromUtf8(bytes);
  if (decoded === undefined) throw malformed("an extended file name is not UTF-8");
  return decoded;
}

/** A parameter of a header, quoted or not; browsers escape quotes as %22 or by a backslash. */
function parameterOf(header: string, name: string): string | undefined {
  const pattern = new RegExp(`;\\s*${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s"]+))`, "i");
  const match = pattern.exec(header);
  if (match === null) return undefined;
  if (match[2] !== undefined) return match[2];
  return (match[1] ?? "").replaceAll(/\\(["\\])/g, "$1").replaceAll("%22", '"');
}

function boundaryOf(contentType: string): string {
  const boundary = parameterOf(contentType, "boundary");
  if (boundary === undefined || boundary.length > 70) {
    throw malformed("its boundary is missing or longer than 70 characters");
  }
  return boundary;
}

function malformed(what: string): DatabaseError {
  return invalidInput(`Cannot read the form: ${what}`);
}
