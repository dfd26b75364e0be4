/**
 * What a check of the files says, and to whom: each finding as it is met, and each file as it is
 * done, so that a long check can be followed.
 */
import type { CorruptionError } from "../../base/errors.ts";

export interface Finding {
  /** A note is no damage: a crash leaves such things behind, and a start or a repair did them. */
  readonly kind: "damage" | "note";
  readonly path: string;
  /** Where in the file; undefined for notes. */
  readonly offset: number | undefined;
  readonly what: string;
  /** The table whose rows it is about, if it is one. */
  readonly tableId: number | undefined;
}

export interface CheckListener {
  onFinding(finding: Finding): void;
  /** So many bytes of a file were checked; called once or more for each file. */
  onChecked(path: string, byteCount: number): void;
}

export function damageFinding({ path, offset, what }: CorruptionError, tableId?: number): Finding {
  return { kind: "damage", path, offset, what, tableId };
}

export function noteFinding(path: string, what: string, tableId?: number): Finding {
  return { kind: "note", path, offset: undefined, what, tableId };
}
