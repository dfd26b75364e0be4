/**
 * The seqs that a restore, or a crash before the disk had everything, took away. A client may have
 * seen commits there; whoever resumes from such a position is told that it does not exist.
 */
import type { CatalogDatabase } from "../catalog/mod.ts";
import type { SeqGap } from "../storage/mod.ts";

const SETTING = "lost_seqs";

/** Above this, the two oldest become one, which refuses the positions between them as well. */
const GAPS_MAX = 1000;

/** Oldest first. */
export function lostSeqsOf(catalog: CatalogDatabase): readonly SeqGap[] {
  const text = catalog.setting(SETTING);
  if (text === undefined) return [];
  const gaps = JSON.parse(text) as readonly (readonly [number, number])[];
  return gaps.map(([after, upTo]) => ({ after, upTo }));
}

/** Adds a gap that is newer than those before it, durably; the same one again changes nothing. */
export function noteLostSeqs(catalog: CatalogDatabase, { after, upTo }: SeqGap): void {
  const known = lostSeqsOf(catalog);
  if (upTo - after <= 1 || known.some((gap) => gap.after === after && gap.upTo >= upTo)) return;
  // An attempt that was cut off has noted a shorter one from the same place.
  const gaps = [...known.filter((gap) => gap.after !== after), { after, upTo }];
  const [first, second, ...rest] = gaps;
  const kept =
    gaps.length > GAPS_MAX && first !== undefined && second !== undefined
      ? [{ after: first.after, upTo: second.upTo }, ...rest]
      : gaps;
  catalog.changeSetting(SETTING, JSON.stringify(kept.map((gap) => [gap.after, gap.upTo])));
}
