/**
 * Manages the state of the editor's text: it is running, it has results, or one of its queries is
 * being followed.
 */
import { type RefObject, useEffect, useRef, useState } from "react";
import { ServerError } from "../../src/client/mod.ts";
import { db } from "./database.ts";
import { isExample } from "./example.ts";
import { type Failure, failureFrom, isAbort } from "./failure.tsx";
import { type FollowedQuery, followedQuery } from "./live_query.ts";
import { type ReadEntry, RunReader } from "./run_reader.ts";
import type { EditorHandle } from "./sql_editor.tsx";
import { type Submitted, statementsIn } from "./statements.ts";
import { strings } from "./strings.ts";

/** The outcome of running statements. */
interface Answer {
  readonly entries: readonly ReadEntry[];
  /** The duration of the run, in milliseconds; undefined until all of it has succeeded. */
  readonly tookMs: number | undefined;
  readonly failure: Failure | undefined;
  /** Whether the user stopped the run. */
  readonly isStopped: boolean;
  /**
   * Whether the server ended the run after the first rows, because the page stopped reading or the
   * run was killed.
   */
  readonly isLeft: boolean;
}

const NO_ANSWER: Answer = {
  entries: [],
  tookMs: undefined,
  failure: undefined,
  isStopped: false,
  isLeft: false,
};

const NO_QUERY: Failure = {
  code: strings.editor.live,
  message: strings.live.noQuery,
  hint: strings.live.noQueryHelp,
  reason: undefined,
  place: undefined,
};

/** A result with more rows to read. */
export interface Reading {
  /** Whether rows of a result are being read. */
  readonly isBusy: boolean;
  readonly more: () => void;
  readonly all: () => Promise<void>;
  readonly stop: () => void;
}

export type Outcome =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly abort: AbortController }
  | (Answer & {
      readonly kind: "done";
      readonly run: number;
      readonly submitted: Submitted;
      readonly reading: Reading | undefined;
    })
  | {
      readonly kind: "live";
      readonly run: number;
      readonly submitted: Submitted;
      readonly query: FollowedQuery;
      /** Whether the page itself changes the rows. */
      readonly isExample: boolean;
    };

export interface Runs {
  readonly outcome: Outcome;
  /** Runs the editor's text or, if `isLive` is set, follows one of its queries. */
  readonly start: (isLive: boolean) => void;
  /** Closes a live view. */
  readonly clear: () => void;
  /**
   * Marks the position of an error in the editor. Returns the failure with its position in the
   * editor's text.
   */
  readonly place: (error: unknown, submitted: Submitted) => Failure;
}

export function useRuns(
  editor: RefObject<EditorHandle | null>,
  onAnswer: (entries: readonly ReadEntry[]) => void,
): Runs {
  const count = useRef(0);
  /**
   * Aborting the controller ends the response to the previous run if it has not been read
   * completely.
   */
  const latest = useRef<AbortController>(undefined);
  useEffect(() => () => latest.current?.abort(), []);
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });

  const place = (error: unknown, { offset, text }: Submitted): Failure => {
    const failure = failureFrom(error, {
      isSingle: statementsIn(text).length <= 1,
      placeOf(position) {
        const at = offset + position;
        return { offset: at, ...(editor.current?.lineOf(at) ?? { line: 1, column: 1 }) };
      },
    });
    if (failure.place !== undefined) editor.current?.mark(failure.place.offset, failure.message);
    return failure;
  };

  /** Runs statements, and shows their results. @returns Whether all of them succeeded. */
  const run = async (submitted: Submitted): Promise<boolean> => {
    const abort = new AbortController();
    const { text } = submitted;
    const parts = db.stream(text, { signal: abort.signal });
    const reader = new RunReader(parts, Math.max(1, statementsIn(text).length));
    const read = (): Promise<Answer> => answerOf(reader, (error) => place(error, submitted));
    latest.current = abort;
    setOutcome({ kind: "running", abort });
    const answer = await read();
    const show = (reading: Reading | undefined, shown: Answer): void => {
      if (latest.current !== abort) return;
      setOutcome({ kind: "done", run: count.current, submitted, reading, ...shown });
    };
    readingOf({ answer, abort, read, show });
    onAnswer(answer.entries);
    return answer.failure === undefined && !answer.isStopped;
  };

  const follow = async (query: Submitted | undefined, text: string): Promise<void> => {
    const isMoving = isExample(text);
    const all = { text, offset: 0 };
    // A user who has not run the example yet has no table to follow.
    if (isMoving && !(await run(all))) return;
    const { current } = count;
    if (query !== undefined) {
      const followed = followedQuery(query.text);
      const submitted = query;
      setOutcome({ kind: "live", run: current, submitted, query: followed, isExample: isMoving });
    } else {
      const answer = { ...NO_ANSWER, failure: NO_QUERY };
      setOutcome({ kind: "done", run: current, submitted: all, reading: undefined, ...answer });
    }
  };

  const start = (isLive: boolean): void => {
    const { current: handle } = editor;
    if (handle === null || outcome.kind === "running") return;
    handle.clearMark();
    latest.current?.abort();
    count.current += 1;
    if (isLive) void follow(handle.query(), handle.text());
    else void run(handle.submitted());
  };

  const clear = (): void => {
    latest.current?.abort();
    latest.current = undefined;
    setOutcome({ kind: "none" });
  };
  return { outcome, start, clear, place };
}

/** Continues reading the response to a run. Returns the results so far. */
async function answerOf(reader: RunReader, place: (error: unknown) => Failure): Promise<Answer> {
  const answer = (rest: Partial<Answer>): Answer => ({
    ...NO_ANSWER,
    entries: reader.entries(),
    tookMs: reader.tookMs,
    ...rest,
  });
  try {
    await reader.readMore();
    return answer({});
  } catch (error) {
    if (isAbort(error)) return answer({ isStopped: true });
    const hasRows = reader.entries().some(({ rows }) => rows.length > 0);
    const isLeft = hasRows && error instanceof ServerError && error.reason === "cancelled";
    return answer(isLeft ? { isStopped: true, isLeft } : { failure: place(error) });
  }
}

/** Shows a result, and updates it as more rows are read. */
function readingOf({
  abort,
  answer: first,
  read,
  show,
}: {
  readonly answer: Answer;
  readonly abort: AbortController;
  readonly read: () => Promise<Answer>;
  readonly show: (reading: Reading | undefined, answer: Answer) => void;
}): void {
  let answer = first;
  let isAllWanted = false;
  let busy: Promise<void> | undefined;
  const hasMore = (): boolean => answer.entries.some((entry) => entry.hasMore);
  const stop = (): void => abort.abort();
  const present = (isBusy: boolean): void => {
    const reading = { isBusy, more: () => void go(false), all: () => go(true), stop };
    show(hasMore() ? reading : undefined, answer);
  };
  const readOn = async (): Promise<void> => {
    for (;;) {
      present(true);
      answer = await read();
      if (!isAllWanted || !hasMore()) break;
    }
    busy = undefined;
    isAllWanted = false;
    present(false);
  };
  /**
   * Reads more rows. If all rows are requested during another read, that read continues until it
   * has all of them.
   */
  const go = (isAll: boolean): Promise<void> => {
    isAllWanted ||= isAll;
    busy ??= readOn();
    return busy;
  };
  present(false);
}
