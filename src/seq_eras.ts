/**
 * Keeps the eras of seqs in the catalog, so that backups and archives include them.
 */
import { type SeqEra, SeqTimes } from "./base/seq_times.ts";
import type { CatalogDatabase } from "./catalog/mod.ts";

const SETTING = "seq_eras";

export function seqTimesOf(catalog: CatalogDatabase): SeqTimes {
  const text = catalog.setting(SETTING);
  const eras = text === undefined ? [] : (JSON.parse(text) as readonly SeqEra[]);
  return new SeqTimes({ eras, save: (all) => catalog.changeSetting(SETTING, JSON.stringify(all)) });
}
