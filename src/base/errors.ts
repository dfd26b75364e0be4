/**
 * What can go wrong without Tidemark having a bug, as errors: what a client or a disk can cause,
 * and damage to stored bytes.
 */
import type { Condition } from "./condition.ts";
import { withoutMiddle } from "./short_text.ts";

export type { Condition };

/**
 * In UTF-16 units. What a message names may be as long as a request, a name of a statement for one,
 * and is not sent back and logged whole: the beginning says what failed, the end why.
 */
const TEXT_LENGTH_MAX = 2000;

/** What an error can say besides its condition and message. */
export interface ErrorDetails {
  /** 0-based UTF-16 offset into the text of the request. */
  position?: number | undefined;
  /** What the caller can do about it. */
  hint?: string | undefined;
  /** 0-based index of the failing statement. */
  statementIndex?: number | undefined;
  /** For RESUME_EXPIRED: the oldest position that can still be resumed from. */
  earliestSeq?: number | undefined;
  /** The object exists but is hidden from the caller, who must not learn that it exists. */
  isHidden?: boolean;
  cause?: unknown;
}

/** What another error says in the place of the same of this one. */
export interface ErrorChanges extends ErrorDetails {
  condition?: Condition;
  message?: string;
}

/**
 * An expected failure. Messages name the object, column, value or limit, and never a secret. A
 * message or hint that is too long to be read is kept without its middle.
 */
export class DatabaseError extends Error {
  readonly condition: Condition;
  readonly position: number | undefined;
  readonly hint: string | undefined;
  readonly statementIndex: number | undefined;
  readonly earliestSeq: number | undefined;
  readonly isHidden: boolean;

  constructor(condition: Condition, message: string, details: ErrorDetails = {}) {
    super(
      withoutMiddle(message, TEXT_LENGTH_MAX),
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    this.name = "DatabaseError";
    this.condition = condition;
    this.position = details.position;
    this.hint =
      details.hint === undefined ? undefined : withoutMiddle(details.hint, TEXT_LENGTH_MAX);
    this.statementIndex = details.statementIndex;
    this.earliestSeq = details.earliestSeq;
    this.isHidden = details.isHidden === true;
  }
}

/**
 * The same failure with changes, and all else that it says; it is the cause unless one is given.
 */
export function withDetails(error: DatabaseError, changes: ErrorChanges): DatabaseError {
  const { condition = error.condition, message = error.message, ...details } = changes;
  return new DatabaseError(condition, message, { ...detailsOf(error), cause: error, ...details });
}

/** What the machine causes: the text may say where files of the server lie. */
const OF_FILES: ReadonlySet<Condition> = new Set([
  "DATA_DAMAGED",
  "DISK_FULL",
  "STORAGE_UNAVAILABLE",
  "COMMIT_UNKNOWN",
  "INTERNAL_ERROR",
]);

/** The same failure for who need not know where files of the server lie. */
export function withoutPaths(error: DatabaseError): DatabaseError {
  if (!OF_FILES.has(error.condition)) return error;
  const { hint, message } = error;
  return withDetails(error, {
    message: namesOnly(message),
    ...(hint === undefined ? {} : { hint: namesOnly(hint) }),
  });
}

/** A text whose paths are only the names at their ends. */
export function namesOnly(text: string): string {
  // Word by word: a pattern with the slash in it would look for one from each letter of a word.
  return text.replaceAll(/[^\s"'(),:;]+/g, (word) => {
    if (!word.includes("/")) return word;
    return word.split("/").findLast((name) => name !== "") ?? "the root directory";
  });
}

/** What an error says besides its condition, message and cause. */
export function detailsOf({
  earliestSeq,
  hint,
  isHidden,
  position,
  statementIndex,
}: DatabaseError): Required<Omit<ErrorDetails, "cause">> {
  return { earliestSeq, hint, isHidden, position, statementIndex };
}

/** Whether the caller lacks a right, even if the error it sees is "not found". */
export function isDenial({ condition, isHidden }: DatabaseError): boolean {
  return isHidden || condition === "PERMISSION_DENIED";
}

/** Stored bytes that are not what was written. Never skipped silently, never repaired by guess. */
export class CorruptionError extends Error {
  readonly path: string;
  /** Byte offset in the file where the damage was noticed. */
  readonly offset: number;
  /** Ends the sentence "Cannot read … at byte …: ". */
  readonly what: string;
  /** Whether the log was told of it where it was met. */
  isLogged = false;

  constructor(path: string, offset: number, what: string) {
    super(`Cannot read ${path} at byte ${offset}: ${what}`);
    this.name = "CorruptionError";
    this.path = path;
    this.offset = offset;
    this.what = what;
  }
}

/** The disk would not read what should be there: it is damaged, or away for a moment. */
export class UnreadableError extends CorruptionError {
  /** As of {@linkcode DiskError}. */
  readonly code: string;

  constructor(path: string, code: string, offset = 0) {
    super(path, offset, `the disk says ${code}`);
    this.name = "UnreadableError";
    this.code = code;
  }
}

/** Whether an error says that stored bytes are damaged, met just now or known before. */
export function isDamage(error: unknown): boolean {
  if (error instanceof CorruptionError) return true;
  return error instanceof DatabaseError && error.condition === "DATA_DAMAGED";
}

/** A failed disk operation, with the system's own code. */
export class DiskError extends Error {
  /** System error word, e.g. "ENOSPC", "EIO", "ENOENT". */
  readonly code: string;
  readonly path: string;
  /** A verb, e.g. "write". */
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
 * Whether a code of {@linkcode DiskError} says that the process, or the system, has too many files
 * open.
 */
export function hasNoDescriptor(code: string): boolean {
  return code === "EMFILE" || code === "ENFILE";
}

/** What the disk, the data on it or the catalog can do to any work; anything else is a bug. */
export function isExpected(error: unknown): error is Error {
  return (
    error instanceof DiskError || error instanceof DatabaseError || error instanceof CorruptionError
  );
}

/** What the log says of a bug: where it was met, if that is known. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
