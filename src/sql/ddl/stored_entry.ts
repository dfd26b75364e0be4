/** Stores the entries of CREATE VIEW and CREATE FUNCTION in the catalog. */
import type { ViewEntry } from "../../catalog/mod.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";
import type { BoundDefinition, EntryDeps } from "./namespace_definitions.ts";

export interface NewEntry {
  /** The kind and name of the stored object, for the message. */
  readonly shown: string;
  /** The catalog entry to be replaced; undefined for a new object. */
  readonly before: ViewEntry | undefined;
  readonly entryOf: (viewId: number) => ViewEntry;
}

/**
 * Returns the definition that stores a catalog entry. It replaces the earlier entry, if there is
 * one.
 */
export function storingEntry(
  { before, entryOf, shown }: NewEntry,
  { catalog, live, store }: EntryDeps & Pick<DefinitionFollowers, "live">,
): BoundDefinition {
  if (before === undefined) {
    return () => {
      store.requireFreeSpace();
      const entry = entryOf(catalog.nextTableId());
      catalog.createView({ ...entry, changedSeq: store.issueSeq() });
      return `${shown} created`;
    };
  }
  return () => {
    catalog.changeView({ ...entryOf(before.viewId), changedSeq: store.issueSeq() });
    live().viewChanged();
    return `${shown} replaced`;
  };
}
