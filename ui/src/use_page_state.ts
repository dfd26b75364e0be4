/**
 * Ties the text of the editor to the address and to the browser's storage. Typed text replaces the
 * newest step of the history; a text that was run remains as a step to come back to.
 */
import { useCallback, useEffect, useLayoutEffect, useRef } from "react";
import { keepState, type PageState, stateFromHash } from "./page_state.ts";

/** Not at every key. */
const KEEP_MS = 250;

interface Kept {
  readonly isLive: boolean;
  readonly text: string;
}

export interface KeptPage {
  /** The text or the page has changed. */
  readonly changed: (now: Kept) => void;
  /** The shown text was run: the history can come back to it. */
  readonly ran: (now: Kept) => void;
}

export function usePageState(userId: string, onBack: (state: PageState) => void): KeptPage {
  const waiting = useRef<Kept>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  /** Whether the newest step of the history is one to come back to. */
  const isRun = useRef(true);
  const goBack = useRef(onBack);
  goBack.current = onBack;

  const flush = useCallback((): void => {
    clearTimeout(timer.current);
    const { current: now } = waiting;
    if (now === undefined) return;
    waiting.current = undefined;
    keepState(now, { isStep: isRun.current, userId });
    isRun.current = false;
  }, [userId]);

  const changed = useCallback(
    (now: Kept): void => {
      waiting.current = now;
      clearTimeout(timer.current);
      timer.current = setTimeout(flush, KEEP_MS);
    },
    [flush],
  );

  const ran = useCallback(
    (now: Kept): void => {
      waiting.current = now;
      flush();
      isRun.current = true;
    },
    [flush],
  );

  useEffect(() => {
    const onPopState = (): void => {
      clearTimeout(timer.current);
      waiting.current = undefined;
      isRun.current = true;
      goBack.current(stateFromHash(location.hash));
    };
    addEventListener("popstate", onPopState);
    addEventListener("pagehide", flush);
    return () => {
      removeEventListener("popstate", onPopState);
      removeEventListener("pagehide", flush);
    };
  }, [flush]);

  // Before anything else that the end of a session brings.
  useLayoutEffect(() => flush, [flush]);
  return { changed, ran };
}
