/**
 * What became of the text of the editor: it runs, it gave results, or one of its queries is followed.
 */
import { type RefObject, useRef, useState } from "react";
import { ServerError } from "../../src/client/mod.ts";
import type { StatementEntry } from "../../src/protocol/mod.ts";
import { db } from "./database.ts";
import { isExample } from "./example.ts";
import { type Failure, failureFrom, isAbort } from "./failure.tsx";
import type { EditorHandle } from "./sql_editor.tsx";
import { type Submitted, statementsIn } from "./statements.ts";
import { strings } from "./strings.ts";

/** How a run has ended. */
interface Answer {
  readonly entries: readonly StatementEntry[];
  /** Undefined if not all of it succeeded. */
  readonly tookMs: number | undefined;
  readonly failure: Failure | undefined;
  /** Whether it was stopped by the one who started it. */
  readonly isStopped: boolean;
}

const NO_ANSWER: Answer = { entries: [], tookMs: undefined, failure: undefined, isStopped: false };

const NO_QUERY: Failure = {
  code: strings.editor.live,
  message: strings.live.noQuery,
  hint: strings.live.noQueryHelp,
  reason: undefined,
  place: undefined,
};

export type Outcome =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly abort: AbortController }
  | (Answer & { readonly kind: "done"; readonly run: number; readonly submitted: Submitted })
  | {
      readonly kind: "live";
      readonly run: number;
      readonly submitted: Submitted;
      /** Whether the page moves the rows itself. */
      readonly isExample: boolean;
    };

export interface Runs {
  readonly outcome: Outcome;
  /** Runs what the editor holds, or follows one of its queries. */
  readonly start: (isLive: boolean) => void;
  /** Takes a live view away. */
  readonly clear: () => void;
  /** Marks the place of an error and gives it in the words of the editor. */
  readonly place: (error: unknown, submitted: Submitted) => Failure;
}

export function useRuns(
  editor: RefObject<EditorHandle | null>,
  onAnswer: (entries: readonly StatementEntry[]) => void,
): Runs {
  const count = useRef(0);
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

  /** @returns Whether all of it succeeded. */
  const run = async (submitted: Submitted): Promise<boolean> => {
    const abort = new AbortController();
    setOutcome({ kind: "running", abort });
    const answer = await answerTo(submitted, { signal: abort.signal, place });
    setOutcome({ kind: "done", run: count.current, submitted, ...answer });
    onAnswer(answer.entries);
    return answer.tookMs !== undefined;
  };

  const follow = async (query: Submitted | undefined, text: string): Promise<void> => {
    const isMoving = isExample(text);
    const all = { text, offset: 0 };
    // Whoever has not run the example yet has no table to follow.
    if (isMoving && !(await run(all))) return;
    const { current } = count;
    if (query !== undefined) {
      setOutcome({ kind: "live", run: current, submitted: query, isExample: isMoving });
    } else {
      setOutcome({ kind: "done", run: current, submitted: all, ...NO_ANSWER, failure: NO_QUERY });
    }
  };

  const start = (isLive: boolean): void => {
    const { current: handle } = editor;
    if (handle === null || outcome.kind === "running") return;
    handle.clearMark();
    count.current += 1;
    if (isLive) void follow(handle.query(), handle.text());
    else void run(handle.submitted());
  };

  const clear = (): void => setOutcome({ kind: "none" });
  return { outcome, start, clear, place };
}

async function answerTo(
  submitted: Submitted,
  { place, signal }: { signal: AbortSignal; place: Runs["place"] },
): Promise<Answer> {
  try {
    const { results, tookMs } = await db.execute(submitted.text, { signal });
    return { ...NO_ANSWER, entries: results, tookMs };
  } catch (error) {
    if (isAbort(error)) return { ...NO_ANSWER, isStopped: true };
    const entries = error instanceof ServerError ? error.results : [];
    return { ...NO_ANSWER, entries, failure: place(error, submitted) };
  }
}
