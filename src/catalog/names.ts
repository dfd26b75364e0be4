/**
 * Defines the rules for the names of objects.
 *
 * The names of namespaces, tables, views, topics, webhooks, storages, tokens, invitations and
 * constraints follow the same rule, with one exception: the names of tables and of the objects on
 * them may begin with "_", because Prisma uses such names. Quoted column names may contain other
 * characters. User ids have separate rules, because other systems assign them.
 */
import { DatabaseError, type ErrorDetails } from "../base/errors.ts";
import { beginningOf } from "../base/short_text.ts";

/** The name of the namespace that always exists. It is an ordinary namespace for tables. */
export const DEFAULT_NAMESPACE = "default";

/**
 * The name of a namespace that every new database has, because scripts written for PostgreSQL
 * expect it.
 */
export const PUBLIC_NAMESPACE = "public";

/** The maximum length of an object or column name, in characters. */
export const NAME_LENGTH_MAX = 64;

/** The maximum length of a user id, in bytes of UTF-8. */
const USER_ID_BYTES_MAX = 128;

export type ObjectKind =
  | "namespace"
  | "table"
  | "view"
  | "function"
  | "topic"
  | "sequence"
  | "type"
  | "policy"
  | "trigger"
  | "webhook"
  | "token"
  | "invitation"
  | "storage"
  | "index"
  | "constraint";

/** The kinds of objects whose names may begin with "_". */
const KINDS_BEGINNING_LOW: ReadonlySet<ObjectKind> = new Set<ObjectKind>([
  "table",
  "view",
  "sequence",
  "index",
  "constraint",
  "policy",
  "trigger",
]);

/** Returns whether a namespace must not be created, dropped or altered. Case is ignored. */
export function isReservedNamespace(name: string): boolean {
  const folded = name.toLowerCase();
  return RESERVED_NAMESPACES.has(folded) || folded.startsWith("pg_");
}

/**
 * Returns whether a namespace contains only the server's own tables, or no tables at all. Case is
 * ignored.
 */
export function isSystemNamespace(name: string): boolean {
  return isReservedNamespace(name) && name.toLowerCase() !== DEFAULT_NAMESPACE;
}

/**
 * Refuses a name that is not valid for an object of the given kind.
 * @throws {DatabaseError} INVALID_NAME; for a namespace, also RESERVED_NAME.
 */
export function checkObjectName(kind: ObjectKind, name: string, details: ErrorDetails = {}): void {
  const mayBeginLow = KINDS_BEGINNING_LOW.has(kind);
  if (!OBJECT_NAME.test(mayBeginLow ? name.replace(/^_/, "a") : name)) {
    const first = mayBeginLow ? 'a letter or "_"' : "a letter";
    throw new DatabaseError(
      "INVALID_NAME",
      `Cannot use ${quoted(name)} as a ${kind} name: it must consist of 1 to ` +
        `${NAME_LENGTH_MAX} letters, digits or "_", and begin with ${first}`,
      details,
    );
  }
  if (kind === "namespace" && isReservedNamespace(name)) {
    throw new DatabaseError(
      "RESERVED_NAME",
      `Cannot use ${quoted(name)} as a namespace name: it is reserved`,
      details,
    );
  }
}

/**
 * Refuses an invalid column name.
 *
 * @param isQuoted Whether the name was written in double quotes, which permit more characters.
 * @throws {DatabaseError} INVALID_NAME, RESERVED_NAME
 */
export function checkColumnName(
  name: string,
  { isQuoted = false, ...details }: ErrorDetails & { isQuoted?: boolean } = {},
): void {
  if (name.startsWith("_")) {
    throw new DatabaseError(
      "RESERVED_NAME",
      `Cannot use ${quoted(name)} as a column name: names that begin with "_" are reserved for ` +
        "system columns",
      details,
    );
  }
  const fits = isQuoted ? QUOTED_COLUMN_NAME.test(name) : OBJECT_NAME.test(name);
  if (!fits) {
    throw new DatabaseError(
      "INVALID_NAME",
      `Cannot use ${quoted(name)} as a column name: it must be 1 to ${NAME_LENGTH_MAX} ${
        isQuoted
          ? "printable characters"
          : 'letters, digits or "_", beginning with a letter, or be quoted'
      }`,
      details,
    );
  }
}

/** Returns whether a string can be a user id. */
function isUserId(userId: string): boolean {
  return (
    userId !== "" &&
    userId.isWellFormed() &&
    Buffer.byteLength(userId) <= USER_ID_BYTES_MAX &&
    !FORBIDDEN_IN_USER_ID.test(userId)
  );
}

/**
 * Returns the reason why a string cannot be the id of a new user, phrased as the end of a
 * sentence; undefined if the string is a valid id. Characters that cannot be seen are refused,
 * because they would make two users indistinguishable.
 */
export function newUserIdFault(userId: string): string | undefined {
  if (!isUserId(userId)) return USER_ID_RULE;
  if (userId !== userId.trim()) return "it must not begin or end with whitespace";
  if (UNSEEN_IN_USER_ID.test(userId)) {
    return (
      "it must not contain invisible characters, characters that change the direction of text, " +
      "or whitespace other than an ordinary space"
    );
  }
  if (userId !== userId.normalize("NFC")) {
    return "its accented letters must be in composed form (Unicode NFC)";
  }
  return undefined;
}

/** Refuses a string that is not a valid id for a new user. @throws {DatabaseError} INVALID_NAME */
export function checkNewUserId(userId: string): void {
  const fault = newUserIdFault(userId);
  if (fault === undefined) return;
  throw new DatabaseError("INVALID_NAME", `Cannot use ${quoted(userId)} as a user id: ${fault}`);
}

/** Refuses a string that cannot be the id of any user. @throws {DatabaseError} INVALID_NAME */
export function checkUserId(userId: string, details: ErrorDetails = {}): void {
  if (isUserId(userId)) return;
  throw new DatabaseError(
    "INVALID_NAME",
    `Cannot use ${quoted(userId)} as a user id: ${USER_ID_RULE}`,
    details,
  );
}

const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  DEFAULT_NAMESPACE,
  "system",
  "information_schema",
  "sys",
  "root",
  "main",
  "sql",
  "admin",
  "internal",
  "tidemark",
]);

const OBJECT_NAME = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

// Matches a quoted column name of printable characters: no control, unassigned or private-use
// characters, and no line breaks. The only format characters allowed are the joiners, which some
// scripts require.
const QUOTED_COLUMN_NAME = /^(?:[^\p{C}\p{Zl}\p{Zp}]|\u200C|\u200D){1,64}$/u;

const USER_ID_RULE = `it must have 1 to ${USER_ID_BYTES_MAX} bytes, and contain no control characters, "/", "\\" or ".."`;

/**
 * Matches characters that a user id must not contain because they cannot be seen: zero-width,
 * bidirectional, unassigned and private-use characters, fillers, and all whitespace except U+0020.
 */
const UNSEEN_IN_USER_ID = /[\p{C}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{White_Space}/u;

const FORBIDDEN_IN_USER_ID = /[\p{Cc}/\\]|\.\./u;

/** Returns the form in which messages quote a name: shortened, and without control characters. */
function quoted(name: string): string {
  const shown = name.length > NAME_LENGTH_MAX ? `${beginningOf(name, NAME_LENGTH_MAX)}…` : name;
  return JSON.stringify(shown);
}
