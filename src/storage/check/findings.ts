/**
 * The interface through which file checks report their results. A listener is notified of each
 * finding as it occurs and of each file once it has been checked, which makes the progress of a
 * long check visible.
 */
import type { CorruptionError } from "../../base/errors.ts";

export interface Finding {
  /**
   * Whether the finding is damage or a note. A note only reports leftovers of crashes, startups or
   * repairs.
   */
  readonly kind: "damage" | "note";
  readonly path: string;
  /** The offset of the damage within the file; undefined for notes. */
  readonly offset: number | undefined;
  readonly what: string;
  /** The table whose rows are affected, if any. */
  readonly tableId: number | undefined;
}

export interface CheckListener {
  onFinding(finding: Finding): void;
  /**
   * Called one or more times for each checked file, with the number of bytes checked since the
   * previous call.
   */
  onChecked(path: string, byteCount: number): void;
}

export function damageFinding({ path, offset, what }: CorruptionError, tableId?: number): Finding {
  return { kind: "damage", path, offset, what, tableId };
}

export function noteFinding(path: string, what: string, tableId?: number): Finding {
  return { kind: "note", path, offset: undefined, what, tableId };
}
