/** Renders the workbench, where users write SQL, run it, see its results, or follow it live. */
import {
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { ConnectionError, ServerError } from "../../src/client/mod.ts";
import { isExample } from "./example.ts";
import { type Failure, FailureBox } from "./failure.tsx";
import { Icon } from "./icon.tsx";
import type { ListedTable } from "./listed_table.ts";
import { LivePanel } from "./live_panel.tsx";
import { firstState } from "./page_state.ts";
import { Results } from "./results.tsx";
import type { ReadEntry } from "./run_reader.ts";
import { readTables } from "./schema.ts";
import { SoftButton } from "./soft_button.tsx";
import { type EditorHandle, SqlEditor } from "./sql_editor.tsx";
import type { Submitted } from "./statements.ts";
import { strings } from "./strings.ts";
import { type ListState, TableList } from "./table_list.tsx";
import { usePageState } from "./use_page_state.ts";
import { type Outcome, useRuns } from "./use_runs.ts";

interface Listed {
  readonly tables: readonly ListedTable[];
  readonly state: ListState;
}

/**
 * The interval at which the table list is updated with tables created elsewhere, in milliseconds.
 */
const TABLES_MS = 5000;

/**
 * Returns the current tables. The list is read again at intervals, and after a run that may have
 * changed it.
 */
function useTables(): Listed & { reload: () => void } {
  const [listed, setListed] = useState<Listed>({ tables: [], state: "loading" });
  const reload = useCallback(() => {
    readTables().then(
      (tables) =>
        setListed((before) => {
          const isSame =
            before.state === "ready" && JSON.stringify(before.tables) === JSON.stringify(tables);
          return isSame ? before : { tables, state: "ready" };
        }),
      (error: unknown) => {
        // Without the table list, the rest of the page works, and the next run reports the error.
        if (!(error instanceof ServerError || error instanceof ConnectionError)) throw error;
        setListed(({ tables }) => ({ tables, state: "failed" }));
      },
    );
  }, []);
  useEffect(() => {
    reload();
    const timer = setInterval(() => {
      if (!document.hidden) reload();
    }, TABLES_MS);
    document.addEventListener("visibilitychange", reload);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", reload);
    };
  }, [reload]);
  return { ...listed, reload };
}

export function Workbench({ userId }: { readonly userId: string }): ReactNode {
  const editor = useRef<EditorHandle>(null);
  const [first] = useState(() => firstState(userId));
  const [isLive, setLive] = useState(first.isLive);
  const { reload, state, tables } = useTables();
  const { clear, outcome, place, start } = useRuns(editor, (entries) => {
    const mayBeRead = state === "failed" && entries.length > 0;
    if (mayBeRead || entries.some(isDefinition)) reload();
  });
  /**
   * Switches the live view on or off. A live view may start by itself, because it changes nothing.
   * Only the example waits for the user.
   */
  const show = (isFollowed: boolean, text: string): void => {
    setLive(isFollowed);
    if (isFollowed && !isExample(text)) start(true);
    else clear();
  };
  const { changed, ran } = usePageState(userId, ({ isLive: isFollowed, text }) => {
    const shown = text ?? editor.current?.text() ?? "";
    if (text !== undefined && text !== editor.current?.text()) editor.current?.replace(text);
    show(isFollowed, shown);
  });
  const begin = (isFollowed: boolean): void => {
    start(isFollowed);
    ran({ isLive: isFollowed, text: editor.current?.text() ?? "" });
  };
  useEffect(() => {
    if (first.isLive) show(true, first.text);
    // oxlint-disable-next-line react/exhaustive-deps -- once, with the state from the address
  }, []);
  const isRunning = outcome.kind === "running";
  const choose = (sql: string): void => {
    editor.current?.replace(sql);
    begin(isLive);
  };
  const setMode = (live: boolean): void => {
    setLive(live);
    if (live) begin(true);
    else {
      if (outcome.kind === "live") clear();
      changed({ isLive: false, text: editor.current?.text() ?? "" });
    }
  };
  return (
    <>
      <TableList
        tables={tables}
        state={state}
        isOff={isRunning}
        onReload={reload}
        onChoose={choose}
      />
      <section className="bench" aria-label={strings.editor.label}>
        <Toolbar outcome={outcome} isLive={isLive} onRun={begin} onLive={setMode} />
        <SqlEditor
          ref={editor}
          text={first.text}
          tables={tables}
          onRun={() => begin(isLive)}
          onChange={(text) => changed({ isLive, text })}
        />
        <section className="outcome" aria-label={strings.results.region}>
          <OutcomeView
            outcome={outcome}
            onGoTo={(offset) => editor.current?.goTo(offset)}
            onLiveError={place}
          />
        </section>
      </section>
    </>
  );
}

interface ToolbarProps {
  readonly outcome: Outcome;
  readonly isLive: boolean;
  readonly onRun: (isLive: boolean) => void;
  readonly onLive: (isLive: boolean) => void;
}

function Toolbar({ isLive, onLive, onRun, outcome }: ToolbarProps): ReactNode {
  const runButton = useRef<HTMLButtonElement>(null);
  const isRunning = outcome.kind === "running";
  return (
    <div className="toolbar">
      <SoftButton
        ref={runButton}
        className="primary"
        title={strings.editor.runHelp}
        isOff={isRunning}
        onClick={() => onRun(isLive)}
      >
        <Icon name="run" />
        {strings.editor.run}
        <kbd>{isMac() ? "⌘↵" : "Ctrl ↵"}</kbd>
      </SoftButton>
      {isRunning && <StopButton abort={outcome.abort} focusAfter={runButton} />}
      <SoftButton
        isOff={isRunning}
        role="switch"
        className="switch"
        aria-checked={isLive}
        title={strings.editor.liveHelp}
        onClick={() => onLive(!isLive)}
      >
        <span className="knob" />
        {strings.editor.live}
      </SoftButton>
    </div>
  );
}

function StopButton({
  abort,
  focusAfter,
}: {
  readonly abort: AbortController;
  readonly focusAfter: RefObject<HTMLButtonElement | null>;
}): ReactNode {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    const { current: element } = button;
    // The focus must not be lost when the run ends and the button disappears.
    return () => {
      if (document.activeElement === element) focusAfter.current?.focus();
    };
  }, [focusAfter]);
  return (
    <button ref={button} type="button" onClick={() => abort.abort()}>
      <Icon name="stop" />
      {strings.editor.stop}
    </button>
  );
}

interface OutcomeProps {
  readonly outcome: Outcome;
  readonly onGoTo: (offset: number) => void;
  readonly onLiveError: (error: unknown, submitted: Submitted) => Failure;
}

function OutcomeView({ onGoTo, onLiveError, outcome }: OutcomeProps): ReactNode {
  switch (outcome.kind) {
    case "none":
      return (
        <div className="empty">
          <p>{strings.results.empty}</p>
          <p className="faint">{strings.results.emptyHelp(isMac() ? "Cmd+Enter" : "Ctrl+Enter")}</p>
        </div>
      );
    case "running":
      return (
        <p className="empty" role="status">
          {strings.results.running}
        </p>
      );
    case "live":
      return (
        <LivePanel
          key={outcome.run}
          query={outcome.query}
          isExample={outcome.isExample}
          renderError={(error) => (
            <LiveFailure
              error={error}
              submitted={outcome.submitted}
              onGoTo={onGoTo}
              onLiveError={onLiveError}
            />
          )}
        />
      );
    case "done": {
      const { entries, failure, isLeft, isStopped, reading, run, submitted, tookMs } = outcome;
      const end = isStopped ? (
        <Stopped isLeft={isLeft} rows={entries.reduce((sum, { rows }) => sum + rows.length, 0)} />
      ) : (
        failure && <FailureBox failure={failure} sql={submitted.text} onGoTo={onGoTo} />
      );
      // If a run fails while more rows are being read, the new key makes its results show the
      // failure first.
      const key = `${run}${end === undefined ? "" : " ended"}`;
      return <Results key={key} {...{ entries, tookMs, isStopped, reading }} failure={end} />;
    }
  }
}

interface StoppedProps {
  readonly rows: number;
  readonly isLeft: boolean;
}

function Stopped({ isLeft, rows }: StoppedProps): ReactNode {
  const { left, leftHelp, stopped, stoppedHelp } = strings.results;
  return (
    <div className="message" role="status">
      <p>{isLeft ? left(rows) : stopped(rows)}</p>
      <p className="figures">{isLeft ? leftHelp : stoppedHelp}</p>
    </div>
  );
}

/** Marks the position of an error once, when the error occurs. */
function LiveFailure({
  error,
  onGoTo,
  onLiveError,
  submitted,
}: Omit<OutcomeProps, "outcome"> & {
  readonly error: unknown;
  readonly submitted: Submitted;
}): ReactNode {
  const [failure, setFailure] = useState<Failure>();
  const report = useRef(onLiveError);
  useEffect(() => setFailure(report.current(error, submitted)), [error, submitted]);
  if (failure === undefined) return null;
  return <FailureBox failure={failure} sql={submitted.text} onGoTo={onGoTo} />;
}

/**
 * Whether a statement may have changed the tables. Statements that change or return rows have not
 * changed them.
 */
function isDefinition({ entry: { last_seq: lastSeq, schema } }: ReadEntry): boolean {
  return schema === undefined && lastSeq === undefined;
}

function isMac(): boolean {
  return /Mac|iPhone|iPad/.test(navigator.userAgent);
}
