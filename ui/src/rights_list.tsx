/**
 * The common parts of the lists on the page about rights: a section with a table that is a live
 * query, buttons that ask before they drop something, and statements with their failures.
 */
import { type ReactNode, useEffect, useId, useState } from "react";
import { type CellObject, ConnectionError, ServerError } from "../../src/client/mod.ts";
import { db } from "./database.ts";
import { strings } from "./strings.ts";
import { type FollowedRows, useRows } from "./use_rows.ts";

const texts = strings.rights;

/** The time that a button waits for the second click, in milliseconds. */
const ASK_MS = 5000;

export interface Column {
  readonly head: string;
  readonly cell: (row: CellObject) => ReactNode;
  readonly isCode?: boolean;
}

export interface RightsListProps {
  readonly title: string;
  readonly help: string;
  readonly none: string;
  readonly query: string;
  /** Returns the text that identifies a row. */
  readonly keyOf: (row: CellObject) => string;
  readonly columns: readonly Column[];
  /** The form that adds a row, shown below the table. */
  readonly children?: ReactNode;
}

export function RightsList(props: RightsListProps): ReactNode {
  const { children, columns, help, keyOf, none, query, title } = props;
  const id = useId();
  const followed = useRows(query);
  const { error, rows } = followed;
  return (
    <section className="rights-list" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      <p className="help">{help}</p>
      {error !== undefined && (
        <p className="fault" role="alert">
          {error.message}
        </p>
      )}
      <p role="status" className="faint">
        {noteOf(followed, none)}
      </p>
      {rows !== undefined && rows.length > 0 && (
        // The element is focusable, so that the arrow keys scroll a table that is wider than the
        // page.
        <div className="rights-scroll" tabIndex={0} role="group" aria-labelledby={id}>
          <table>
            <thead>
              <tr>
                {columns.map(({ head }) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={keyOf(row)}>
                  {columns.map(({ cell, head, isCode }) => (
                    <td key={head} dir="auto" className={isCode === true ? "code" : undefined}>
                      {cell(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {children}
    </section>
  );
}

function noteOf({ rows }: FollowedRows, none: string): string {
  if (rows === undefined) return strings.loading;
  return rows.length === 0 ? none : "";
}

export interface Statement {
  readonly isBusy: boolean;
  /** Tells the user which action was refused and why; undefined if no action was refused. */
  readonly fault: string | undefined;
  /**
   * Runs a statement. @returns The cells of its first row; undefined if the statement was refused.
   */
  readonly run: (sql: string) => Promise<CellObject | undefined>;
}

export function useStatement(): Statement {
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const run = async (sql: string): Promise<CellObject | undefined> => {
    setBusy(true);
    setFault(undefined);
    try {
      const [row] = await db.query(sql);
      return row ?? {};
    } catch (error) {
      setFault(faultOf(error));
      return undefined;
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, fault, run };
}

function faultOf(error: unknown): string {
  if (error instanceof ServerError) {
    const hint = error.hint === undefined ? "" : ` ${strings.error.hint(error.hint)}`;
    return `${error.message}.${hint}`;
  }
  if (error instanceof ConnectionError) return error.message;
  throw error;
}

export function Fault({ text }: { readonly text: string | undefined }): ReactNode {
  if (text === undefined) return null;
  return (
    <p className="fault" role="alert">
      {text}
    </p>
  );
}

/** A button that drops something when it is clicked a second time. */
export function DropButton({
  name,
  sql,
}: {
  readonly name: string;
  readonly sql: string;
}): ReactNode {
  const { fault, isBusy, run } = useStatement();
  const [isAsked, setAsked] = useState(false);
  useEffect(() => {
    if (!isAsked) return undefined;
    const timer = setTimeout(() => setAsked(false), ASK_MS);
    return () => clearTimeout(timer);
  }, [isAsked]);
  const click = (): void => {
    if (!isAsked) setAsked(true);
    else if (!isBusy) void run(sql).then(() => setAsked(false));
  };
  return (
    <>
      <button
        type="button"
        className={isAsked ? "danger" : ""}
        aria-label={isAsked ? texts.dropReally(name) : texts.drop(name)}
        title={sql}
        onClick={click}
      >
        {isAsked ? texts.dropReallyShort : texts.dropShort}
      </button>
      <Fault text={fault} />
    </>
  );
}
