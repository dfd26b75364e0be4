/**
 * Shows the live view of a query: its rows, newest first, with the delivery figures next to them.
 */
import { type ReactNode, useCallback, useState } from "react";
import type { ServerError } from "../../src/client/mod.ts";
import { lineText } from "./cells.ts";
import { db } from "./database.ts";
import { Grid } from "./grid.tsx";
import { Icon } from "./icon.tsx";
import type { LiveCounts } from "./live_model.ts";
import type { FollowedQuery } from "./live_query.ts";
import { SoftButton } from "./soft_button.tsx";
import { strings } from "./strings.ts";
import { type LiveView, useLive } from "./use_live.ts";
import { useMoves } from "./use_moves.ts";

export interface LivePanelProps {
  readonly query: FollowedQuery;
  /** Whether the page itself changes the rows, to demonstrate changes. */
  readonly isExample: boolean;
  /** Renders the error with which the query has ended. */
  readonly renderError: (error: ServerError) => ReactNode;
}

const CUT_MS = 3000;

export function LivePanel({ isExample, query, renderError }: LivePanelProps): ReactNode {
  const [isPaused, setPaused] = useState(false);
  const view = useLive(query, isPaused);
  const { lastRows, order, sql } = query;
  const { error, rows, schema, status } = view;
  const isMoving = isExample && status === "ready" && !isPaused;
  const refusal = useMoves(isMoving);
  const { live } = strings;
  const row = useCallback((index: number) => rows[index] ?? { key: index, cells: [] }, [rows]);
  return (
    <div className="live">
      <div className="live-bar">
        <span className={`status status-${status}`} role="status">
          {live.status[status]}
        </span>
        <button
          type="button"
          aria-pressed={isPaused}
          // If the query ended while it was paused, the rows that had arrived by then can still be
          // shown.
          disabled={status === "ended" && !isPaused}
          onClick={() => setPaused(!isPaused)}
        >
          <Icon name={isPaused ? "run" : "pause"} />
          {isPaused ? live.resume : live.pause}
        </button>
        {isPaused && <span className="held">{live.held(view.held)}</span>}
        <SoftButton isOff={status !== "ready"} onClick={() => db.interrupt(CUT_MS)}>
          <Icon name="cut" />
          {live.cut}
        </SoftButton>
        <span className="news" role="status">
          {newsOf(view)}
        </span>
      </div>
      <p className="followed">
        <code dir="auto">{lineText(sql)}</code>
        {order !== undefined && schema.length > 0 && (
          <span>{view.isSorted ? live.sorted(order.text) : live.notSorted(order.text)}</span>
        )}
        {refusal !== undefined && <span>{live.notMoving(refusal)}</span>}
        {refusal === undefined && isExample && status !== "ended" && <span>{live.moving}</span>}
      </p>
      <Statistics counts={view.counts} doubled={view.doubled} isOver={status === "ended"} />
      {error !== undefined && renderError(error)}
      {schema.length > 0 && (
        <Grid
          label={view.isSorted ? live.sortedGrid : live.grid}
          schema={schema}
          rowCount={rows.length}
          row={row}
          isMoving
          footer={view.counts.isPartial ? <span>{live.partial(lastRows)}</span> : undefined}
        />
      )}
    </div>
  );
}

function newsOf({ counts, status }: LiveView): string {
  const { live } = strings;
  if (status === "offline") return live.cutting;
  if (counts.resumedFrom !== undefined) {
    return status === "ready" ? live.resumed(counts.resumedFrom, counts.replayed) : live.back;
  }
  return counts.isRestarted ? live.restarted : "";
}

function Statistics({
  counts,
  doubled,
  isOver,
}: {
  readonly counts: LiveCounts;
  readonly doubled: number;
  readonly isOver: boolean;
}): ReactNode {
  const { live } = strings;
  // A query that has ended proves nothing, so the absence of faults is not shown as success.
  const moodOf = (faults: number): string => (faults > 0 ? "bad" : isOver ? "" : "good");
  return (
    <dl className="stats" aria-label={live.statsLabel}>
      <Figure name={live.stats.rows} value={strings.count(counts.rows)} />
      <Figure name={live.stats.changes} value={strings.count(counts.changes)} />
      <Figure name={live.stats.p50} value={durationText(counts.p50)} help={live.latencyHelp} />
      <Figure name={live.stats.p99} value={durationText(counts.p99)} help={live.latencyHelp} />
      <Figure
        name={live.stats.missed}
        value={strings.count(counts.missed)}
        help={live.missedHelp}
        mood={moodOf(counts.missed)}
      />
      <Figure
        name={live.stats.doubled}
        value={strings.count(doubled)}
        help={live.doubledHelp}
        mood={moodOf(doubled)}
      />
      <Figure name={live.stats.resumes} value={strings.count(counts.resumes)} />
    </dl>
  );
}

function durationText(ms: number | undefined): string {
  return ms === undefined ? strings.live.none : strings.duration(ms);
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly help?: string;
  readonly mood?: string;
}

function Figure({ help, mood = "", name, value }: FigureProps): ReactNode {
  return (
    <div className="figure" title={help}>
      <dt>{name}</dt>
      <dd className={mood}>{value}</dd>
    </div>
  );
}
