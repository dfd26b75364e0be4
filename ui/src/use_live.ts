/**
 * Ties a live query to React: events go into the model at once, the screen follows with the next
 * frame when it is quiet, and ten times a second under load. While paused the screen keeps what it shows; the
 * model goes on, so that nothing has to be held back or caught up.
 */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { LiveEvent, LiveQuery, LiveStatus, ServerError } from "../../src/client/mod.ts";
import type { SchemaField } from "../../src/protocol/mod.ts";
import { db } from "./database.ts";
import { type LiveCounts, LiveModel, type LiveRow } from "./live_model.ts";
import type { FollowedQuery } from "./live_query.ts";

/** Between two drawings: a frame while little happens, much more while much does. */
const DRAW_MS_QUIET = 16;
const DRAW_MS_BUSY = 100;
/** So many messages within one drawing are much. */
const BUSY_MESSAGES = 20;

export interface LiveView {
  readonly status: LiveStatus;
  readonly error: ServerError | undefined;
  readonly schema: readonly SchemaField[];
  readonly rows: readonly LiveRow[];
  /** Whether they are in the wanted order. */
  readonly isSorted: boolean;
  readonly counts: LiveCounts;
  readonly doubled: number;
  /** Changes that have come since the view was paused. */
  readonly held: number;
}

interface Drawn extends LiveView {
  readonly model: LiveModel;
}

export function useLive(
  { lastRows, order, shownRows, sql }: FollowedQuery,
  isPaused: boolean,
): LiveView {
  const [drawn, setDrawn] = useState<Drawn>(() => emptyView());
  const pause = useRef(isPaused);
  const redraw = useRef(() => {});
  const terms = order?.terms;

  useEffect(() => {
    const model = new LiveModel(lastRows, terms);
    let query: LiveQuery | undefined;
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

    const onEvent = (event: LiveEvent): void => {
      if (event.type === "status")
        ({ error, status } = { error: event.error, status: event.status });
      model.apply(event, performance.now());
      messages += 1;
      soon();
    };
    // The model keeps the rows.
    query = db.live(sql, { lastRows, keepRows: false, onEvent });
    soon();
    return () => {
      clearTimeout(timer);
      query.close();
    };
  }, [lastRows, shownRows, sql, terms]);

  useEffect(() => {
    pause.current = isPaused;
    redraw.current();
  }, [isPaused]);

  usePainted(drawn, pause, redraw);
  return drawn;
}

/** Tells the model when what it has is on the screen. */
function usePainted(
  { counts, model }: Drawn,
  pause: RefObject<boolean>,
  redraw: RefObject<() => void>,
): void {
  useLayoutEffect(() => {
    // What is drawn here is on the screen with the next frame.
    const frame = requestAnimationFrame(() => {
      const isMeasured = !pause.current && !document.hidden;
      // How long it took is known only now, and nothing else may come that draws it.
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
