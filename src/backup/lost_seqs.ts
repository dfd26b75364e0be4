/**
 * Records which seqs were lost in a restore, or in a crash before all commits were on disk. A
 * client may have seen commits with these seqs, so it cannot resume from any of them.
 */
import type { CatalogDatabase } from "../catalog/mod.ts";
import type { SeqGap } from "../storage/mod.ts";

const SETTING = "lost_seqs";

/**
 * The maximum number of recorded gaps. Beyond it, the two oldest gaps are merged, and clients can
 * no longer resume from positions between them either.
 */
const GAPS_MAX = 1000;

/** Returns the ranges of lost seqs, oldest first. */
export function lostSeqsOf(catalog: CatalogDatabase): readonly SeqGap[] {
  const text = catalog.setting(SETTING);
  if (text === undefined) return [];
  const gaps = JSON.parse(text) as readonly (readonly [number, number])[];
  return gaps.map(([after, upTo]) => ({ after, upTo }));
}

/**
 * Durably records a range of lost seqs, which must be newer than all recorded ranges. Recording
 * the same range again has no effect.
 */
export function noteLostSeqs(catalog: CatalogDatabase, { after, upTo }: SeqGap): void {
  const known = lostSeqsOf(catalog);
  if (upTo - after <= 1 || known.some((gap) => gap.after === after && gap.upTo >= upTo)) return;
  // An interrupted attempt may have recorded a shorter gap that begins at the same seq.
  const gaps = [...known.filter((gap) => gap.after !== after), { after, upTo }];
  const [first, second, ...rest] = gaps;
  const kept =
    gaps.length > GAPS_MAX && first !== undefined && second !== undefined
      ? [{ after: first.after, upTo: second.upTo }, ...rest]
      : gaps;
  catalog.changeSetting(SETTING, JSON.stringify(kept.map((gap) => [gap.after, gap.upTo])));
}
