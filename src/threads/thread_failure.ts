/**
 * An error on its way from one thread to another, where the classes of errors do not survive: as
 * plain data, and as an error of its class again.
 */
import {
  type Condition,
  CorruptionError,
  DatabaseError,
  DiskError,
  stackOf,
  UnreadableError,
} from "../base/errors.ts";

export type ThreadFailure =
  | { readonly kind: "damage"; readonly path: string; readonly offset: number; what: string }
  | { readonly kind: "unreadable"; readonly code: string; readonly path: string; offset: number }
  | { readonly kind: "disk"; readonly code: string; readonly path: string; operation: string }
  | {
      readonly kind: "refusal";
      readonly condition: Condition;
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
    const { condition, hint, message, position } = error;
    return { kind: "refusal", condition, text: message, hint, position };
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
      const { condition, hint, position, text } = failure;
      return new DatabaseError(condition, text, {
        position,
        ...(hint === undefined ? {} : { hint }),
      });
    }
    case "bug": {
      const error = new Error("A thread met a bug");
      // The place that matters is in the thread.
      error.stack = failure.text;
      return error;
    }
  }
}
