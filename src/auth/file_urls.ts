/**
 * Creates signed file URLs for page elements that cannot send a header: `<img>`, `<video>`, `<a>`.
 *
 *     /v1/files/{file id}/{name}?access={session}.{until}.{signature}
 *
 *     session    base64url of JSON: ["login", user, session id, token version, role], with the
 *                claims as a sixth element if a provider identified the user, or
 *                ["token", name of the service token]
 *     file id    for the archive of an export, "export " and its id: `/v1/exports/{user}/{id}`
 *     until      the time at which the URL expires, in Unix seconds
 *     signature  base64url(HMAC-SHA256(key, "{session}.{until}.{file id}"))
 *     key        base64url(HMAC-SHA256(secret, "file urls\n{session}\n{hash of the service token}"))
 *
 * A signature proves only which session requested the URL. Each time the URL is used, the server
 * checks that the session still exists and that its user may read the file, so it is safe for
 * anyone to sign any file id. The key differs from session to session, so it can be given to the
 * threads that run statements. A service token recreated under its old name has a different hash,
 * so the old URLs stay invalid.
 */
import { timingSafeEqual } from "node:crypto";
import type { FileUrlKey } from "./principal.ts";

type Claims = Readonly<Record<string, string>>;

/** The session for which a file URL was signed. */
export type FileUrlSession =
  | {
      readonly kind: "login";
      readonly userId: string;
      readonly sessionId: string;
      readonly tokenVersion: number;
      readonly role: string;
      /**
       * The session's claims if a provider identified the user, because the account does not
       * contain them; otherwise undefined.
       */
      readonly claims?: Claims | undefined;
    }
  | { readonly kind: "token"; readonly name: string };

/** The components of the URL parameter `access`. Its signature has not been verified yet. */
export interface FileAccessText {
  readonly session: FileUrlSession;
  readonly sessionText: string;
  /** The time at which a signed URL expires, in Unix seconds (exclusive). */
  readonly until: number;
  readonly signature: string;
}

/**
 * Creates the key with which a session signs file URLs.
 * @param secondsMax The maximum lifetime of a URL, in seconds.
 */
export function fileUrlKey(
  secret: Uint8Array,
  session: FileUrlSession,
  { secondsMax, tokenHash = "" }: { secondsMax: number; tokenHash?: string },
): FileUrlKey {
  const text = textOfSession(session);
  return { session: text, key: keyOf(secret, text, tokenHash), secondsMax };
}

/**
 * Returns the path and query of a signed URL.
 *
 * @param until The time at which the URL expires, in Unix seconds.
 */
export function signedFileUrl(
  { basePath = "", key, session }: Omit<FileUrlKey, "secondsMax">,
  { fileId, name, until }: { fileId: string; name: string; until: number },
): string {
  const access = signedAccess({ key, session }, { fileId, until });
  const safeName = name.toWellFormed().replaceAll(/[/\\\0]/g, "_");
  const segment = /^\.*$/.test(safeName) ? "file" : encodeURIComponent(safeName);
  return `${basePath}/v1/files/${fileId}/${segment}?access=${access}`;
}

/**
 * Returns the name that takes the place of a file id when the URL for the download of an export is
 * signed. No file has this name as its id.
 */
export function exportAccessName(exportId: string): string {
  return `export ${exportId}`;
}

/** Returns the value of the `access` parameter for a file, or for the name of another download. */
export function signedAccess(
  { key, session }: Pick<FileUrlKey, "key" | "session">,
  { fileId, until }: { fileId: string; until: number },
): string {
  return `${session}.${until}.${signatureOf(key, { session, until, fileId })}`;
}

/** Parses the `access` parameter of a signed file URL. Returns undefined if it is malformed. */
export function fileAccessFrom(access: string): FileAccessText | undefined {
  const [, sessionText = "", seconds = "", signature = ""] =
    /^([\w-]{1,6000})\.(\d{1,12})\.([\w-]{43})$/.exec(access) ?? [];
  const session = sessionFrom(sessionText);
  if (session === undefined) return undefined;
  return { session, sessionText, until: Number(seconds), signature };
}

export function isFileSignature(
  secret: Uint8Array,
  { sessionText, signature, until }: FileAccessText,
  { fileId, tokenHash = "" }: { fileId: string; tokenHash?: string | undefined },
): boolean {
  const key = keyOf(secret, sessionText, tokenHash);
  const made = Buffer.from(signatureOf(key, { session: sessionText, until, fileId }));
  const given = Buffer.from(signature);
  return made.length === given.length && timingSafeEqual(made, given);
}

function textOfSession(session: FileUrlSession): string {
  const parts =
    session.kind === "token"
      ? ["token", session.name]
      : [
          "login",
          session.userId,
          session.sessionId,
          session.tokenVersion,
          session.role,
          ...(session.claims === undefined ? [] : [session.claims]),
        ];
  return Buffer.from(JSON.stringify(parts)).toString("base64url");
}

function sessionFrom(text: string): FileUrlSession | undefined {
  let parts: unknown;
  try {
    parts = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    // A string that is not JSON was not signed by this server. The caller refuses it.
    return undefined;
  }
  if (!Array.isArray(parts)) return undefined;
  const [kind, name, sessionId, tokenVersion, role, claims] = parts as unknown[];
  if (typeof name !== "string") return undefined;
  if (kind === "token") return { kind, name };
  if (kind !== "login" || typeof sessionId !== "string") return undefined;
  if (typeof tokenVersion !== "number" || typeof role !== "string") return undefined;
  if (claims !== undefined && !areClaims(claims)) return undefined;
  return { kind, userId: name, sessionId, tokenVersion, role, claims };
}

function areClaims(value: unknown): value is Claims {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((claim) => typeof claim === "string");
}

function keyOf(secret: Uint8Array, session: string, tokenHash: string): string {
  const text = `file urls\n${session}\n${tokenHash}`;
  return new Bun.CryptoHasher("sha256", secret).update(text).digest("base64url");
}

function signatureOf(
  key: string,
  { fileId, session, until }: { session: string; until: number; fileId: string },
): string {
  const text = `${session}.${until}.${fileId}`;
  return new Bun.CryptoHasher("sha256", key).update(text).digest("base64url");
}
