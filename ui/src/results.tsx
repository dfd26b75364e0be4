/**
 * What a run of statements gave: one tab per statement, and one more for the failure that ended it.
 */
import {
  type KeyboardEvent,
  type ReactNode,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import type { StatementEntry } from "../../src/protocol/mod.ts";
import { Grid } from "./grid.tsx";
import { strings } from "./strings.ts";

export interface ResultsProps {
  readonly entries: readonly StatementEntry[];
  /** Of the whole run. */
  readonly tookMs: number | undefined;
  /** The failure that ended the run, drawn. */
  readonly failure: ReactNode;
  /** Whether a person stopped the run: `failure` then tells so, and is none. */
  readonly isStopped: boolean;
}

/** Begins anew for each run: give it a key. */
export function Results({ entries, failure, isStopped, tookMs }: ResultsProps): ReactNode {
  const count = entries.length + (failure === undefined ? 0 : 1);
  // The last rows are what was asked for; a failure is what must be seen.
  const lastRows = entries.findLastIndex(({ rows }) => rows !== undefined);
  const first = failure === undefined && lastRows >= 0 ? lastRows : count - 1;
  const [index, setIndex] = useState(first);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const entry = entries[index];
  useLayoutEffect(() => {
    const tab = list.current?.querySelectorAll("button").item(index);
    tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [index]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: count - 1 }[
      event.key
    ];
    if (next === undefined) return;
    const wrapped = (next + count) % count;
    setIndex(wrapped);
    list.current?.querySelectorAll("button").item(wrapped).focus();
    event.preventDefault();
  };
  return (
    <div className="results">
      <div
        ref={list}
        className="tabs"
        role="tablist"
        aria-label={strings.results.tabs}
        onKeyDown={onKeyDown}
      >
        {Array.from({ length: count }, (_, at) => (
          <button
            key={at}
            type="button"
            role="tab"
            id={`${id}-tab-${at}`}
            aria-controls={`${id}-panel`}
            aria-selected={at === index}
            tabIndex={at === index ? 0 : -1}
            onClick={() => setIndex(at)}
          >
            {tabText(entries[at], { number: at + 1, isStopped })}
          </button>
        ))}
      </div>
      <div
        className="panel"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-tab-${index}`}
      >
        {entry === undefined ? (
          failure
        ) : (
          <Entry key={index} entry={entry} number={index + 1} tookMs={tookMs} />
        )}
      </div>
    </div>
  );
}

function tabText(
  entry: StatementEntry | undefined,
  { isStopped, number }: { isStopped: boolean; number: number },
): string {
  if (entry === undefined) {
    return isStopped ? strings.results.stoppedTab : strings.results.failedTab(number);
  }
  return strings.results.tab(number, entry.rows === undefined ? undefined : entry.row_count);
}

function Entry({
  entry,
  number,
  tookMs,
}: {
  readonly entry: StatementEntry;
  readonly number: number;
  readonly tookMs: number | undefined;
}): ReactNode {
  const { as_user: user, last_seq: lastSeq, message, row_count: count, rows, schema } = entry;
  const figures = [
    rows === undefined ? undefined : strings.rows(count),
    tookMs === undefined ? undefined : strings.results.took(tookMs),
    strings.results.asUser(user),
    typeof lastSeq === "number" ? strings.results.lastSeq(lastSeq) : undefined,
  ].filter((figure) => figure !== undefined);
  const footer = <span className="figures">{figures.join(" · ")}</span>;
  if (schema === undefined || rows === undefined) {
    return (
      <div className="message">
        <p dir="auto">{message ?? strings.results.done}</p>
        <p className="figures">{footer}</p>
      </div>
    );
  }
  return (
    <Grid
      label={strings.results.grid(number)}
      schema={schema}
      rowCount={rows.length}
      row={(index) => ({ key: index, cells: rows[index] ?? [] })}
      footer={footer}
    />
  );
}
