/**
 * Implements ALTER TABLE … RENAME TO for views, sequences and indexes. PostgreSQL accepts this
 * statement for every kind of relation, and Rails and pg_dump use it for sequences.
 */
import type { Catalog } from "../../catalog/mod.ts";
import type { DefiningStatement } from "../rights/statement_kinds.ts";
import { indexNamed, partitionIndexNamed } from "./index_elements.ts";

/**
 * Returns the statement that renames a view, sequence or index, in place of an ALTER TABLE that
 * does so. Any other statement is returned unchanged.
 */
export function asRenamedRelation(
  node: DefiningStatement,
  namespace: string,
  catalog: Catalog,
): DefiningStatement {
  if (node.type !== "alter table") return node;
  const { _location, changes, ifExists, table } = node;
  const [change, ...others] = changes;
  if (change?.type !== "rename table" || others.length > 0) return node;
  const place = { namespace: table.schema ?? namespace, name: table.name };
  if (catalog.table(place.namespace, place.name) !== undefined) return node;
  const { to } = change;
  const renaming = { name: table, ifExists, _location };
  if (catalog.sequence(place.namespace, place.name) !== undefined) {
    return { ...renaming, type: "alter sequence", options: [], renamedTo: to };
  }
  if (catalog.view(place.namespace, place.name) !== undefined) {
    return { ...renaming, type: "alter view", change: { type: "rename", to } };
  }
  const index = indexNamed(catalog, place) ?? partitionIndexNamed(catalog, place);
  if (index === undefined) return node;
  return { ...renaming, type: "alter index", change: { type: "rename", to } };
}
