/**
 * Parses uploads in the format multipart/form-data (RFC 7578), with text fields and with file parts
 * named `file:x`.
 *
 *     --boundary CRLF
 *     header lines, each ended by CRLF; at most 8 KiB
 *     CRLF
 *     content
 *     CRLF --boundary CRLF     the next part
 *     CRLF --boundary--        the end
 *
 * File parts alias the body, so nothing is copied.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { UploadedFile } from "../../sql/mod.ts";
import { invalidInput, mediaType, textFromUtf8 } from "./request_body.ts";

/** The maximum size of one part's headers. A name, a file name and a media type need far less. */
const PART_HEADER_BYTES_MAX = 8192;

/**
 * The maximum number of parts that are not files: enough for every known field and some unknown
 * ones.
 */
const FIELDS_MAX = 32;

const FILE_PREFIX = "file:";

export interface MultipartLimits {
  readonly max_size_bytes: number;
  readonly max_files_per_request: number;
  readonly allowed_mime_types: readonly string[];
}

export interface MultipartForm {
  /** The text fields of a form, keyed by name. */
  readonly fields: ReadonlyMap<string, string>;
  /** The file parts of a form, keyed by placeholder name without the `file:` prefix. */
  readonly files: ReadonlyMap<string, UploadedFile>;
}

/** Returns whether a Content-Type header declares multipart/form-data. */
export function isMultipart(contentType: string | null): contentType is string {
  // Fast path: nearly every body is JSON, and this check runs twice per body.
  if (contentType === null || contentType === "application/json") return false;
  return mediaType(contentType) === "multipart/form-data";
}

/**
 * Splits a form into its parts.
 *
 * @throws {DatabaseError} INVALID_INPUT if the form is malformed; FILE_TOO_LARGE, TOO_MANY_FILES
 * or INVALID_MIME_TYPE for a file part.
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
          `Cannot upload more than ${limits.max_files_per_request} files in a single request`,
        );
      }
      files.set(key, fileFromPart(key, part, limits));
    } else {
      if (fields.size >= FIELDS_MAX)
        throw invalidInput(
          `Cannot read the form: it has more than ${FIELDS_MAX} parts other than files`,
        );
      const text = textFromUtf8(part.content);
      if (text === undefined) {
        const rule = `the name of a file's part must begin with "file:", as in "${FILE_PREFIX}${part.name}"`;
        const what = part.fileName === undefined ? "" : `, and ${rule}`;
        throw invalidInput(`Cannot read the form: part "${part.name}" is not valid UTF-8${what}`);
      }
      fields.set(key, text);
    }
  }
  return { fields, files };
}

interface MultipartPart {
  readonly name: string;
  readonly fileName: string | undefined;
  readonly contentType: string | undefined;
  readonly content: Uint8Array;
}

function fileFromPart(
  placeholder: string,
  part: MultipartPart,
  limits: MultipartLimits,
): UploadedFile {
  const { content } = part;
  if (content.length > limits.max_size_bytes) {
    throw new DatabaseError(
      "FILE_TOO_LARGE",
      `Cannot upload "${placeholder}": it has ${content.length} bytes, but the maximum is ` +
        limits.max_size_bytes,
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

function* partsOf(body: Uint8Array, contentType: string): Generator<MultipartPart> {
  const delimiter = Buffer.from(`--${boundaryOf(contentType)}`, "latin1");
  const separator = Buffer.concat([Buffer.from("\r\n"), delimiter]);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  // Text before the first delimiter is a preamble and is ignored.
  let offset = bytes.indexOf(delimiter);
  if (offset < 0) throw malformed("the boundary is missing");
  offset += delimiter.length;
  for (;;) {
    if (bytes.toString("latin1", offset, offset + 2) === "--") return;
    offset = afterLineEnd(bytes, offset);
    const headersEnd = bytes.indexOf("\r\n\r\n", Math.max(0, offset - 2), "latin1");
    if (headersEnd < 0) throw malformed("the headers of a part are incomplete");
    if (headersEnd - offset > PART_HEADER_BYTES_MAX) {
      throw malformed(`the headers of a part exceed ${PART_HEADER_BYTES_MAX} bytes`);
    }
    const contentStart = headersEnd + 4;
    const contentEnd = bytes.indexOf(separator, contentStart);
    if (contentEnd < 0) throw malformed("the closing boundary is missing");
    const headerText = textFromUtf8(bytes.subarray(offset, Math.max(offset, headersEnd)));
    if (headerText === undefined) throw malformed("the headers of a part are not valid UTF-8");
    yield partFrom(headerText, bytes.subarray(contentStart, contentEnd));
    offset = contentEnd + separator.length;
  }
}

/** Skips the whitespace and the line break that follow a delimiter. */
function afterLineEnd(bytes: Buffer, start: number): number {
  let offset = start;
  while (bytes[offset] === 0x20 || bytes[offset] === 0x09) offset += 1;
  if (bytes[offset] !== 0x0d || bytes[offset + 1] !== 0x0a) {
    throw malformed("a boundary is not followed by a line break");
  }
  return offset + 2;
}

function partFrom(headerText: string, content: Buffer): MultipartPart {
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
    throw malformed("a part has no Content-Disposition of form-data");
  }
  const name = parameterOf(disposition, "name");
  if (name === undefined || name === "") throw malformed("a part has no name");
  return { name, fileName: fileNameOf(disposition), contentType, content };
}

/**
 * Returns the original name of the file. The extended parameter `filename*` takes precedence, and
 * only the last segment of a path is kept.
 */
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
  if (decoded === undefined) throw malformed("an extended file name is not valid UTF-8");
  return decoded;
}

/**
 * Returns a header parameter, quoted or unquoted. Browsers escape quotes as %22 or with a
 * backslash.
 */
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

const MIME_UNKNOWN = "application/octet-stream";

/** The magic bytes of each media type, and the `offset` at which they begin. */
const MAGIC: readonly { readonly mime: string; readonly hex: string; readonly offset: number }[] = [
  { mime: "image/png", hex: "89504e470d0a1a0a", offset: 0 },
  { mime: "image/jpeg", hex: "ffd8ff", offset: 0 },
  { mime: "image/gif", hex: "47494638", offset: 0 },
  { mime: "image/webp", hex: "57454250", offset: 8 },
  { mime: "image/avif", hex: "6674797061766966", offset: 4 },
  { mime: "application/pdf", hex: "255044462d", offset: 0 },
  { mime: "application/zip", hex: "504b0304", offset: 0 },
  { mime: "application/gzip", hex: "1f8b", offset: 0 },
  { mime: "audio/mpeg", hex: "494433", offset: 0 },
  { mime: "audio/wav", hex: "57415645", offset: 8 },
  { mime: "audio/ogg", hex: "4f676753", offset: 0 },
  { mime: "video/mp4", hex: "66747970", offset: 4 },
  { mime: "video/webm", hex: "1a45dfa3", offset: 0 },
];

const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ["txt", "text/plain"],
  ["md", "text/markdown"],
  ["csv", "text/csv"],
  ["html", "text/html"],
  ["css", "text/css"],
  ["js", "text/javascript"],
  ["json", "application/json"],
  ["xml", "application/xml"],
  ["svg", "image/svg+xml"],
  ["pdf", "application/pdf"],
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["avif", "image/avif"],
  ["mp3", "audio/mpeg"],
  ["wav", "audio/wav"],
  ["ogg", "audio/ogg"],
  ["mp4", "video/mp4"],
  ["webm", "video/webm"],
  ["zip", "application/zip"],
  ["gz", "application/gzip"],
]);

/** Matches a type and subtype as RFC 6838 defines them. */
const MIME_FORM = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;

/**
 * Returns the media type of an uploaded file.
 * @param declared The part's Content-Type, if it has one.
 */
function mimeOfUpload(
  declared: string | undefined,
  { name, bytes }: { name: string; bytes: Uint8Array },
): string {
  if (declared !== undefined && MIME_FORM.test(declared)) return declared;
  for (const { mime, hex, offset } of MAGIC) {
    const length = hex.length / 2;
    if (bytes.length < offset + length) continue;
    if (Buffer.from(bytes.subarray(offset, offset + length)).toString("hex") === hex) return mime;
  }
  const dot = name.lastIndexOf(".");
  const extension = dot < 0 ? "" : name.slice(dot + 1).toLowerCase();
  return BY_EXTENSION.get(extension) ?? MIME_UNKNOWN;
}

/**
 * Returns whether a list of media types allows a type. The entry `image/*` allows all images, and
 * an empty list allows everything.
 */
function isMimeAllowed(mime: string, allowed: readonly string[]): boolean {
  if (allowed.length === 0) return true;
  return allowed.some((pattern) => {
    const wanted = pattern.toLowerCase();
    return wanted.endsWith("/*") ? mime.startsWith(wanted.slice(0, -1)) : wanted === mime;
  });
}
