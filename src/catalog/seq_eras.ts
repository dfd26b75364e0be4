/**
 * Stores the eras, which map seqs to times, in the catalog, so that backups and archives contain
 * them.
 */
import { type SeqEra, SeqTimes } from "../base/seq_times.ts";
import type { CatalogDatabase } from "./catalog_database.ts";
import type { JournalEntry } from "./journal.ts";
import type { SealedTable } from "./records.ts";

const SETTING = "seq_eras";

const SETTINGS: SealedTable = "settings";

export function seqTimesOf(catalog: CatalogDatabase): SeqTimes {
  const save = (eras: readonly SeqEra[]): void =>
    catalog.changeSetting(SETTING, JSON.stringify(eras));
  return new SeqTimes({ eras: seqErasOf(catalog), save });
}

/** Returns the eras in ascending order of their first seq. */
export function seqErasOf(catalog: CatalogDatabase): readonly SeqEra[] {
  return erasFrom(catalog.setting(SETTING));
}

/**
 * Returns the eras from the newest journal entry that contains them; undefined if no entry does.
 */
export function seqErasIn(journal: readonly JournalEntry[]): readonly SeqEra[] | undefined {
  for (const { changes } of journal.toReversed()) {
    const change = changes.findLast(([table, key]) => table === SETTINGS && key === SETTING);
    if (change !== undefined) return erasFrom((change[2] as { readonly value: string }).value);
  }
  return undefined;
}

function erasFrom(text: string | undefined): readonly SeqEra[] {
  return text === undefined ? [] : (JSON.parse(text) as readonly SeqEra[]);
}
