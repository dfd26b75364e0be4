/**
 * Shows the results of a run: one tab per statement, and another tab for the failure that ended
 * the run.
 */
import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { type ExportFormat, saveRows } from "./export_rows.ts";
import { Grid } from "./grid.tsx";
import { Icon } from "./icon.tsx";
import type { ReadEntry } from "./run_reader.ts";
import { SoftButton } from "./soft_button.tsx";
import { strings } from "./strings.ts";
import type { Reading } from "./use_runs.ts";

export interface ResultsProps {
  readonly entries: readonly ReadEntry[];
  /** Reads more rows; undefined if there are no more rows. */
  readonly reading: Reading | undefined;
  /** The duration of the whole run, in milliseconds. */
  readonly tookMs: number | undefined;
  /** The rendered failure that ended the run. */
  readonly failure: ReactNode;
  /** Whether the user stopped the run. If so, `failure` says so and is not an error. */
  readonly isStopped: boolean;
}

/**
 * Shows the results of a run. Callers must set a different key for each run, so that each run gets
 * a new instance.
 */
export function Results({ entries, failure, isStopped, reading, tookMs }: ResultsProps): ReactNode {
  const count = entries.length + (failure === undefined ? 0 : 1);
  // Initially shows the last rows, which users usually want to see, unless there is a failure,
  // which they must not miss.
  const lastRows = entries.findLastIndex(({ entry }) => entry.schema !== undefined);
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
          <Entry key={index} read={entry} number={index + 1} tookMs={tookMs} reading={reading} />
        )}
      </div>
    </div>
  );
}

function tabText(
  read: ReadEntry | undefined,
  { isStopped, number }: { isStopped: boolean; number: number },
): string {
  if (read === undefined) {
    return isStopped ? strings.results.stoppedTab : strings.results.failedTab(number);
  }
  const { entry, hasMore, isCut, rows } = read;
  const count = entry.schema === undefined ? undefined : rows.length;
  return strings.results.tab(number, count, { hasMore: hasMore || isCut });
}

interface EntryProps {
  readonly read: ReadEntry;
  readonly number: number;
  readonly tookMs: number | undefined;
  readonly reading: Reading | undefined;
}

function Entry({ number, read, reading, tookMs }: EntryProps): ReactNode {
  const { entry, hasMore, isCut, rows } = read;
  const { as_user: user, last_seq: lastSeq, message, notices = [], schema } = entry;
  const figures = [
    schema === undefined ? undefined : countText(read),
    tookMs === undefined ? undefined : strings.results.took(tookMs),
    user === "" ? undefined : strings.results.asUser(user),
    typeof lastSeq === "number" ? strings.results.lastSeq(lastSeq) : undefined,
    ...(schema === undefined ? [] : notices),
  ].filter((figure) => figure !== undefined);
  const footer = <span className="figures">{figures.join(" · ")}</span>;
  if (schema === undefined) {
    return (
      <div className="message">
        <p dir="auto">{message ?? strings.results.done}</p>
        {notices.map((notice) => (
          <p dir="auto" key={notice}>
            {notice}
          </p>
        ))}
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
      more={hasMore ? reading : undefined}
      footer={
        <>
          {footer}
          {!isCut && <Exports read={read} reading={hasMore ? reading : undefined} />}
        </>
      }
    />
  );
}

function countText({ hasMore, isCut, rows }: ReadEntry): string {
  if (isCut) return strings.results.cut(rows.length);
  return hasMore ? strings.results.loaded(rows.length) : strings.rows(rows.length);
}

/** Shows buttons that save all rows. Rows that have not been read yet are read first. */
function Exports({
  read,
  reading,
}: {
  readonly read: ReadEntry;
  readonly reading: Reading | undefined;
}): ReactNode {
  const [wanted, setWanted] = useState<ExportFormat>();
  const isBusy = reading?.isBusy === true;
  const { entry, hasMore, rows } = read;
  useEffect(() => {
    if (wanted === undefined || isBusy) return;
    setWanted(undefined);
    // The rows of a stopped run are incomplete, so they are not saved.
    if (!hasMore && entry.schema !== undefined) void saveRows(rows, entry.schema, wanted);
  }, [entry, hasMore, isBusy, rows, wanted]);
  const save = async (format: ExportFormat): Promise<void> => {
    if (reading !== undefined) await reading.all();
    setWanted(format);
  };
  return (
    <span className="exports">
      {isBusy && (
        <button type="button" className="quiet" onClick={reading.stop}>
          <Icon name="stop" />
          {strings.editor.stop}
        </button>
      )}
      {reading !== undefined && (
        <SoftButton isOff={isBusy} className="quiet" onClick={() => void reading.all()}>
          {isBusy ? strings.results.loading : strings.results.loadAll}
        </SoftButton>
      )}
      <SoftButton isOff={isBusy} className="quiet" onClick={() => void save("csv")}>
        {strings.results.exportCsv}
      </SoftButton>
      <SoftButton isOff={isBusy} className="quiet" onClick={() => void save("ndjson")}>
        {strings.results.exportNdjson}
      </SoftButton>
    </span>
  );
}
