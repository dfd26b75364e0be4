/**
 * The interface through which a check of files reports its results. A listener receives each
 * finding when it occurs and each file when it has been checked, so that the progress of a long
 * check is visible.
 */
import type { CorruptionError } from "../../base/errors.ts";

export interface Finding {
  /**
   * Whether the finding is damage. A note is not damage: it reports leftovers of crashes, startups
   * and repairs.
   */
  readonly kind: "damage" | "note";
  readonly path: string;
  /** The offset of the damage in the file; undefined for notes. */
  readonly offset: number | undefined;
  readonly what: string;
  /** The table whose rows are affected, if any. */
  readonly tableId: number | undefined;
}

export interface CheckListener {
  onFinding(finding: Finding): void;
  /** Called one or more times for each file, with the bytes that were checked. */
  onChecked(path: string, byteCount: number): void;
}

export function damageFinding({ path, offset, what }: CorruptionError, tableId?: number): Finding {
  return { kind: "damage", path, offset, what, tableId };
}

export function noteFinding(path: string, what: string, tableId?: number): Finding {
  return { kind: "note", path, offset: undefined, what, tableId };
}
