/**
 * Connects a live query to React. Events enter the model immediately. The screen is updated with
 * the next frame if few events arrive, and ten times a second under load. While paused, the screen
 * keeps its contents and the model continues, so no event is delayed or left to be processed
 * later.
 */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { LiveEvent, LiveQuery, LiveStatus, ServerError } from "../../src/client/mod.ts";
import type { SchemaField } from "../../src/protocol/mod.ts";
import { db } from "./database.ts";
import { type LiveCounts, LiveModel, type LiveRow } from "./live_model.ts";
import type { FollowedQuery } from "./live_query.ts";

/**
 * The interval between two updates of the screen, in milliseconds. It is one frame if few events
 * arrive, and much longer under load.
 */
const DRAW_MS_QUIET = 16;
const DRAW_MS_BUSY = 100;
/** The error code with which the server refuses `last_rows` for a materialised query. */
const NOT_ROW_BY_ROW = "INVALID_OPTIONS";
/** The number of messages between two updates of the screen that counts as load. */
const BUSY_MESSAGES = 20;

export interface LiveView {
  readonly status: LiveStatus;
  readonly error: ServerError | undefined;
  readonly schema: readonly SchemaField[];
  readonly rows: readonly LiveRow[];
  /** Whether the rows are in the requested order. */
  readonly isSorted: boolean;
  readonly counts: LiveCounts;
  readonly doubled: number;
  /** The number of changes that have arrived since the view was paused. */
  readonly held: number;
}

interface Drawn extends LiveView {
  readonly model: LiveModel;
}

export function useLive(
  { lastRows, order, shownRows, sql, whole }: FollowedQuery,
  isPaused: boolean,
): LiveView {
  const [drawn, setDrawn] = useState<Drawn>(() => emptyView());
  const pause = useRef(isPaused);
  const redraw = useRef(() => {});
  const terms = order?.terms;

  useEffect(() => {
    const model = new LiveModel(lastRows, terms);
    let query: Pick<LiveQuery, "close" | "doubled"> | undefined;
    let status: LiveStatus = "connecting";
    let error: ServerError | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let dueMs = 0;
    let drawnMs = -DRAW_MS_BUSY;
    let messages = 0;
    let pauseMs = DRAW_MS_QUIET;

    const draw = (): void => {
      timer = undefined;
      drawnMs = performance.now();
      pauseMs = messages > BUSY_MESSAGES ? DRAW_MS_BUSY : DRAW_MS_QUIET;
      messages = 0;
      const sweepMs = model.sweep(drawnMs);
      const counts = model.counts();
      const { schema } = model;
      const doubled = query?.doubled ?? 0;
      setDrawn((before) => {
        const isFrozen = pause.current && before.model === model;
        const rows = isFrozen ? before.rows : model.rows().slice(0, shownRows);
        const held = isFrozen ? before.held + counts.changes - before.counts.changes : 0;
        const { isSorted } = model;
        return { model, status, error, schema, rows, isSorted, counts, doubled, held };
      });
      if (sweepMs !== undefined) schedule(Math.max(sweepMs, DRAW_MS_BUSY));
    };
    const schedule = (delayMs: number): void => {
      const atMs = performance.now() + delayMs;
      if (timer !== undefined && dueMs <= atMs) return;
      clearTimeout(timer);
      dueMs = atMs;
      timer = setTimeout(draw, delayMs);
    };
    const soon = (): void => schedule(Math.max(0, drawnMs + pauseMs - performance.now()));
    redraw.current = soon;

    const take = (event: LiveEvent): void => {
      if (event.type === "status")
        ({ error, status } = { error: event.error, status: event.status });
      model.apply(event, performance.now());
      messages += 1;
      soon();
    };
    query = follow({ lastRows, sql, whole }, take);
    soon();
    return () => {
      clearTimeout(timer);
      query.close();
    };
  }, [lastRows, shownRows, sql, terms, whole]);

  useEffect(() => {
    pause.current = isPaused;
    redraw.current();
  }, [isPaused]);

  usePainted(drawn, pause, redraw);
  return drawn;
}

/**
 * Follows a query. If the server finds that the query returns the rows of a single table, the
 * subscription starts with the newest rows. Otherwise, the query is followed as written. The model
 * keeps the rows, so the client does not.
 */
function follow(
  { lastRows, sql, whole }: Pick<FollowedQuery, "lastRows" | "sql" | "whole">,
  take: (event: LiveEvent) => void,
): Pick<LiveQuery, "close" | "doubled"> {
  let query: LiveQuery | undefined;
  const onEvent = (event: LiveEvent): void => {
    if (event.type !== "status" || event.error?.code !== NOT_ROW_BY_ROW) {
      take(event);
      return;
    }
    query?.close();
    query = db.live(whole, { keepRows: false, onEvent: take });
  };
  query = db.live(sql, { lastRows, keepRows: false, onEvent });
  return {
    close: () => query?.close(),
    get doubled() {
      return query?.doubled ?? 0;
    },
  };
}

/** Tells the model when its rows are on screen. */
function usePainted(
  { counts, model }: Drawn,
  pause: RefObject<boolean>,
  redraw: RefObject<() => void>,
): void {
  useLayoutEffect(() => {
    // The update becomes visible with the next frame.
    const frame = requestAnimationFrame(() => {
      const isMeasured = !pause.current && !document.hidden;
      // The delay is known only now, and there may be no other reason to redraw the figures.
      if (model.painted(Date.now(), { isMeasured })) redraw.current();
    });
    return () => cancelAnimationFrame(frame);
  }, [counts, model, pause, redraw]);
}

function emptyView(): Drawn {
  const model = new LiveModel(0);
  return {
    model,
    status: "connecting",
    error: undefined,
    schema: model.schema,
    rows: [],
    isSorted: false,
    counts: model.counts(),
    doubled: 0,
    held: 0,
  };
}
