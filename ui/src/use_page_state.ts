/**
 * Connects the editor's text with the address and the browser's storage. Typed text replaces the
 * newest step of the history. Text that has been run remains as a step to which the user can
 * return.
 */
import { useCallback, useEffect, useLayoutEffect, useRef } from "react";
import { keepState, type PageState, stateFromHash } from "./page_state.ts";

/**
 * The time to wait before a change is saved, in milliseconds, because saving at every keystroke
 * would be too often.
 */
const KEEP_MS = 250;

interface Kept {
  readonly isLive: boolean;
  readonly text: string;
}

export interface KeptPage {
  /** Called when the editor's text or the page has changed. */
  readonly changed: (now: Kept) => void;
  /** Called when the shown text has been run, which makes it a step of the history. */
  readonly ran: (now: Kept) => void;
}

export function usePageState(userId: string, onBack: (state: PageState) => void): KeptPage {
  const waiting = useRef<Kept>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  /** Whether the newest step of the history is a step to which the user can return. */
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

  // When a session ends, this layout effect saves the text before all other effects run.
  useLayoutEffect(() => flush, [flush]);
  return { changed, ran };
}
