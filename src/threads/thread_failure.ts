/**
 * Transfers errors between threads. Messages do not preserve the class of an error, so an error is
 * sent as plain data, and the receiver recreates it with its original class.
 */
import {
  CorruptionError,
  DatabaseError,
  DiskError,
  type ErrorCode,
  stackOf,
  UnreadableError,
} from "../base/errors.ts";

export type ThreadFailure =
  | { readonly kind: "damage"; readonly path: string; readonly offset: number; what: string }
  | { readonly kind: "unreadable"; readonly code: string; readonly path: string; offset: number }
  | { readonly kind: "disk"; readonly code: string; readonly path: string; operation: string }
  | {
      readonly kind: "refusal";
      readonly code: ErrorCode;
      readonly text: string;
      readonly hint: string | undefined;
      readonly position: number | undefined;
    }
  | { readonly kind: "bug"; readonly text: string };

export function failureFrom(error: unknown): ThreadFailure {
  if (error instanceof UnreadableError) {
    const { code, offset, path } = error;
    return { kind: "unreadable", code, path, offset };
  }
  if (error instanceof CorruptionError) {
    const { path, offset, what } = error;
    return { kind: "damage", path, offset, what };
  }
  if (error instanceof DiskError) {
    const { code, path, operation } = error;
    return { kind: "disk", code, path, operation };
  }
  if (error instanceof DatabaseError) {
    const { code, hint, message, position } = error;
    return { kind: "refusal", code, text: message, hint, position };
  }
  return { kind: "bug", text: stackOf(error) };
}

export function errorFromFailure(failure: ThreadFailure): Error {
  switch (failure.kind) {
    case "damage":
      return new CorruptionError(failure.path, failure.offset, failure.what);
    case "unreadable":
      return new UnreadableError(failure.path, failure.code, failure.offset);
    case "disk":
      return new DiskError(failure.code, failure.path, failure.operation);
    case "refusal": {
      const { code, hint, position, text } = failure;
      return new DatabaseError(code, text, {
        position,
        ...(hint === undefined ? {} : { hint }),
      });
    }
    case "bug": {
      const error = new Error("A thread stopped because of a bug");
      // Keeps the stack from the thread where the error occurred.
      error.stack = failure.text;
      return error;
    }
  }
}
