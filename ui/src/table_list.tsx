/**
 * The tables beside the editor, by namespace; choosing one writes its query and runs it.
 */
import type { ReactNode } from "react";
import { Icon } from "./icon.tsx";
import { type ListedTable, quoted } from "./schema.ts";
import { strings } from "./strings.ts";

export interface TableListProps {
  readonly tables: readonly ListedTable[];
  readonly onChoose: (sql: string) => void;
  readonly onReload: () => void;
}

/** Enough to see what is in a table, and never a million rows by one click. */
const PREVIEW_ROWS = 1000;

export function TableList({ onChoose, onReload, tables }: TableListProps): ReactNode {
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
      {namespaces.length === 0 && <p className="faint">{strings.tables.none}</p>}
      {namespaces.map((namespace) => (
        <section key={namespace}>
          <h3 dir="auto">{namespace}</h3>
          <ul>
            {tables
              .filter((table) => table.namespace === namespace)
              .map(({ columns, name }) => (
                <li key={name}>
                  <button
                    type="button"
                    title={columns.map((column) => `${column.name} ${column.type}`).join("\n")}
                    onClick={() => onChoose(previewOf(namespace, name))}
                  >
                    <Icon name="table" />
                    <span className="hidden">{strings.tables.show("")}</span>
                    <span dir="auto">{name}</span>
                  </button>
                </li>
              ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

function previewOf(namespace: string, name: string): string {
  return `SELECT * FROM ${quoted(namespace)}.${quoted(name)} LIMIT ${PREVIEW_ROWS};\n`;
}
