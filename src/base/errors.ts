/**
 * Defines the errors that can occur without a bug in Tidemark: failures caused by a client or a
 * disk, and damage to stored bytes.
 */
import type { ErrorCode } from "./error_code.ts";
import { withoutMiddle } from "./short_text.ts";

export type { ErrorCode };

/**
 * The maximum length of a message or hint, in UTF-16 code units. A message may quote a name as
 * long as an entire request, and must then not be returned or logged in full. Messages are
 * shortened in the middle, because the beginning describes the failure and the end gives the
 * reason.
 */
const TEXT_LENGTH_MAX = 2000;

/** The optional fields of an error, besides its code and message. */
export interface ErrorDetails {
  /** The offset of the error in the SQL of the request, in UTF-16 code units from 0. */
  position?: number | undefined;
  /** A hint that tells the caller how to solve the problem. */
  hint?: string | undefined;
  /** The index of the failing statement, counted from 0. */
  statementIndex?: number | undefined;
  /** For RESUME_EXPIRED and HISTORY_TOO_OLD, the oldest seq whose state is still known. */
  earliestSeq?: number | undefined;
  /**
   * Whether the object exists but is hidden from the caller, who must not find out that it exists.
   */
  isHidden?: boolean;
  /** The SQLSTATE, if it differs from the default for the code. */
  sqlstate?: string | undefined;
  cause?: unknown;
}

/** The fields to replace in a copy of an error. */
export interface ErrorChanges extends ErrorDetails {
  code?: ErrorCode;
  message?: string;
}

/**
 * A failure that can occur in normal operation. Its message names the object, column, value or
 * limit, and never contains a secret. A message or hint that is too long is shortened in the
 * middle.
 */
export class DatabaseError extends Error {
  readonly code: ErrorCode;
  readonly position: number | undefined;
  readonly hint: string | undefined;
  readonly statementIndex: number | undefined;
  readonly earliestSeq: number | undefined;
  readonly isHidden: boolean;
  readonly sqlstate: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(
      withoutMiddle(message, TEXT_LENGTH_MAX),
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.name = "DatabaseError";
    this.code = code;
    this.position = details.position;
    this.hint =
      details.hint === undefined ? undefined : withoutMiddle(details.hint, TEXT_LENGTH_MAX);
    this.statementIndex = details.statementIndex;
    this.earliestSeq = details.earliestSeq;
    this.isHidden = details.isHidden === true;
    this.sqlstate = details.sqlstate;
  }
}

/**
 * Returns a copy of an error with some of its details replaced. The original error becomes the
 * cause unless `changes` contains one.
 */
export function withDetails(error: DatabaseError, changes: ErrorChanges): DatabaseError {
  const { code = error.code, message = error.message, ...details } = changes;
  return new DatabaseError(code, message, { ...detailsOf(error), cause: error, ...details });
}

/**
 * The codes of errors that originate on the server's machine. Their messages may contain the paths
 * of the server's files.
 */
const OF_FILES: ReadonlySet<ErrorCode> = new Set([
  "DATA_DAMAGED",
  "DISK_FULL",
  "STORAGE_UNAVAILABLE",
  "COMMIT_UNKNOWN",
  "INTERNAL_ERROR",
]);

/**
 * Returns the same error without the paths of the server's files, for callers who must not see
 * them.
 */
export function withoutPaths(error: DatabaseError): DatabaseError {
  if (!OF_FILES.has(error.code)) return error;
  const { hint, message } = error;
  return withDetails(error, {
    message: namesOnly(message),
    ...(hint === undefined ? {} : { hint: namesOnly(hint) }),
  });
}

/** Returns `text` with each path reduced to its last component. */
export function namesOnly(text: string): string {
  // The text is processed word by word, because a regular expression that contains a slash would
  // start a search at every letter of a word.
  return text.replaceAll(/[^\s"'(),:;]+/g, (word) => {
    if (!word.includes("/")) return word;
    return word.split("/").findLast((name) => name !== "") ?? "the root directory";
  });
}

/** Returns the optional fields of an error, such as its hint and position. */
export function detailsOf({
  earliestSeq,
  hint,
  isHidden,
  position,
  sqlstate,
  statementIndex,
}: DatabaseError): Required<Omit<ErrorDetails, "cause">> {
  return { earliestSeq, hint, isHidden, position, sqlstate, statementIndex };
}

/**
 * Returns whether an error means that the caller lacks a right, even if the error says "not
 * found".
 */
export function isDenial({ code, isHidden }: DatabaseError): boolean {
  return isHidden || code === "PERMISSION_DENIED";
}

/**
 * An error that reports stored bytes that differ from the bytes originally written. The server
 * never silently skips such bytes, and never guesses what they were.
 */
export class CorruptionError extends Error {
  readonly path: string;
  /** The byte offset in the file at which the damage was detected. */
  readonly offset: number;
  /** The last part of the message, which follows "Cannot read … at byte …: ". */
  readonly what: string;
  /** Whether the error has already been logged. */
  isLogged = false;

  constructor(path: string, offset: number, what: string) {
    super(`Cannot read ${path} at byte ${offset}: ${what}`);
    this.name = "CorruptionError";
    this.path = path;
    this.offset = offset;
    this.what = what;
  }
}

/**
 * An error that reports a file that the disk cannot deliver, because the file is damaged or
 * temporarily unavailable.
 */
export class UnreadableError extends CorruptionError {
  /** The code of the {@linkcode DiskError} that caused the error. */
  readonly code: string;

  constructor(path: string, code: string, offset = 0) {
    super(path, offset, `the disk reports ${code}`);
    this.name = "UnreadableError";
    this.code = code;
  }
}

/**
 * Returns whether an error reports damaged bytes, whether they were just discovered or already
 * known.
 */
export function isDamage(error: unknown): boolean {
  if (error instanceof CorruptionError) return true;
  return error instanceof DatabaseError && error.code === "DATA_DAMAGED";
}

/** A failed disk operation, with the error code of the operating system. */
export class DiskError extends Error {
  /** The error code that the system uses, e.g. "ENOSPC", "EIO", "ENOENT". */
  readonly code: string;
  readonly path: string;
  /** The disk operation that failed, as a verb such as "write". */
  readonly operation: string;

  constructor(code: string, path: string, operation: string, cause?: unknown) {
    super(`Cannot ${operation} ${path}: ${code}`, cause === undefined ? undefined : { cause });
    this.name = "DiskError";
    this.code = code;
    this.path = path;
    this.operation = operation;
  }
}

/**
 * Returns whether a {@linkcode DiskError} code means that the process or the system has too many
 * open files.
 */
export function hasNoDescriptor(code: string): boolean {
  return code === "EMFILE" || code === "ENFILE";
}

/**
 * Returns whether an error can be caused by a client, the disk, stored data or the catalog. Any
 * other error is a bug.
 */
export function isExpected(error: unknown): error is Error {
  return (
    error instanceof DiskError || error instanceof DatabaseError || error instanceof CorruptionError
  );
}

/** Returns the text to log for a bug: its stack trace, if it has one. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
