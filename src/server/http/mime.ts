/**
 * The media type of an upload: what its part says, else its first bytes, else its extension.
 */

const MIME_UNKNOWN = "application/octet-stream";

/** First bytes by type; `offset` is where they stand. */
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

/** A type and subtype as RFC 6838 spells them. */
const MIME_FORM = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/;

/** The media type of an upload part. `declared` is its Content-Type, if it has one. */
export function mimeOfUpload(
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

/** Whether a list of types (`image/*` allowed; empty allows all) has this one. */
export function isMimeAllowed(mime: string, allowed: readonly string[]): boolean {
  if (allowed.length === 0) return true;
  return allowed.some((pattern) => {
    const wanted = pattern.toLowerCase();
    return wanted.endsWith("/*") ? mime.startsWith(wanted.slice(0, -1)) : wanted === mime;
  });
}
