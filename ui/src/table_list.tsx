/**
 * Lists the tables next to the editor, by namespace. Choosing a table writes a query for it into
 * the editor and runs that query.
 */
import type { ReactNode } from "react";
import { Icon } from "./icon.tsx";
import type { ListedTable } from "./listed_table.ts";
import { SoftButton } from "./soft_button.tsx";
import { quoted } from "./sql_dialect.ts";
import { strings } from "./strings.ts";

export type ListState = "loading" | "ready" | "failed";

export interface TableListProps {
  readonly tables: readonly ListedTable[];
  /** The outcome of the last attempt to load the list. */
  readonly state: ListState;
  /** Whether tables cannot be chosen at present. */
  readonly isOff: boolean;
  readonly onChoose: (sql: string) => void;
  readonly onReload: () => void;
}

/**
 * The number of rows in a preview: enough to see the contents of a table, without loading a
 * million rows on one click.
 */
const PREVIEW_ROWS = 1000;

/** The server's own views are collapsed, so that users find their tables first. */
const SYSTEM_NAMESPACES: ReadonlySet<string> = new Set(["information_schema", "system"]);

export function TableList({ isOff, onChoose, onReload, state, tables }: TableListProps): ReactNode {
  const namespaces = [...new Set(tables.map(({ namespace }) => namespace))];
  return (
    <nav className="tables" aria-labelledby="tables-title">
      <div className="tables-head">
        <h2 id="tables-title">{strings.tables.title}</h2>
        <button type="button" className="quiet" title={strings.tables.reload} onClick={onReload}>
          <Icon name="reload" />
          <span className="hidden">{strings.tables.reload}</span>
        </button>
      </div>
      <p role="status" className="faint">
        {noteOf(state, tables)}
      </p>
      {namespaces.map((namespace) => (
        <details key={namespace} open={!SYSTEM_NAMESPACES.has(namespace)}>
          <summary dir="auto">{namespace}</summary>
          <ul>
            {tables
              .filter((table) => table.namespace === namespace)
              .map((table) => (
                <li key={table.name}>
                  <SoftButton
                    isOff={isOff}
                    title={table.columns
                      .map((column) => `${column.name} ${column.type}`)
                      .join("\n")}
                    onClick={() => onChoose(previewOf(table))}
                  >
                    <Icon name="table" />
                    <span className="hidden">{strings.tables.show("")}</span>
                    <span dir="auto">{table.name}</span>
                  </SoftButton>
                </li>
              ))}
          </ul>
        </details>
      ))}
    </nav>
  );
}

/**
 * Returns a note on the state of the table list. If loading fails, the earlier list stays visible,
 * marked as outdated.
 */
function noteOf(state: ListState, tables: readonly ListedTable[]): string {
  if (state === "failed") return strings.tables.failed;
  if (tables.length > 0) return "";
  return state === "loading" ? strings.tables.loading : strings.tables.none;
}

/**
 * Returns the query that previews a table. A preview of one of the server's logs shows the newest
 * rows, because people open a log to see its end.
 */
function previewOf({ columns, name, namespace }: ListedTable): string {
  const isLog = namespace === "system" && columns.some((column) => column.name === "timestamp");
  const order = isLog ? " ORDER BY timestamp DESC" : "";
  return `SELECT * FROM ${quoted(namespace)}.${quoted(name)}${order} LIMIT ${PREVIEW_ROWS};\n`;
}
