/**
 * Decides whether a view shows a file to a caller.
 *
 * A view that runs with its owner's rights shows rows of tables that its reader may not otherwise
 * read, and therefore also the files in these rows. The view is queried for the file on behalf of
 * the reader, so readers get exactly the files that they see in the view, and lose access to a
 * file once its row has left the view. Text never becomes a FILE value, so a view cannot show a
 * file that its owner has not read from a row.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import type { Catalog, FileEntry, ViewEntry } from "../../catalog/mod.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { SqlEngine, StatementResult } from "../ports/engine.ts";

type ViewCatalog = Pick<Catalog, "viewById" | "views">;

/**
 * Returns the views that run with their owner's rights and read the column that contains the given
 * file.
 */
export function viewsWithFile(entry: FileEntry, catalog: ViewCatalog): readonly ViewEntry[] {
  return catalog
    .views()
    .filter((view) => view.ownRights !== undefined && reads(view, entry, catalog));
}

function reads(view: ViewEntry, entry: FileEntry, catalog: ViewCatalog): boolean {
  const { columnId, tableId } = entry;
  return (
    view.tables.some((table) => table.tableId === tableId && table.used.includes(columnId)) ||
    view.views.some(({ viewId }) => {
      const inner = catalog.viewById(viewId);
      return inner !== undefined && reads(inner, entry, catalog);
    })
  );
}

/**
 * Returns whether a view, as the caller sees it, has a row with the file.
 *
 * @throws {DatabaseError} The errors of reading the view.
 */
export async function isShownBy(
  { name, namespace }: ViewEntry,
  fileId: string,
  { principal, sql }: { principal: Principal; sql: Pick<SqlEngine, "execute"> },
): Promise<boolean> {
  const from = `FROM ${nameText(namespace)}.${nameText(name)}`;
  const ask = async (text: string, params: readonly string[]): Promise<StatementResult> => {
    const { error, results } = await sql.execute(principal, { sql: text, params });
    if (error !== undefined) throw error;
    return defined(results[0], "file access: query returned no result");
  };
  const { schema = [] } = await ask(`SELECT * ${from} LIMIT 0`, []);
  const tests = schema
    .filter(({ data_type: type }) => type === "File")
    .map((field) => `${nameText(field.name)} ->> 'id' = $1`);
  if (tests.length === 0) return false;
  const { rowCount } = await ask(`SELECT 1 ${from} WHERE ${tests.join(" OR ")} LIMIT 1`, [fileId]);
  return rowCount === 1;
}
