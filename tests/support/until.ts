/**
 * Waits for the effect of later ticks or of a thread. The wait is limited by time rather than by
 * ticks, because a busy machine takes longer for work that an idle one does at once.
 */
const PAUSE_MS_MIN = 2;

/** The maximum pause between two looks, short compared with the time after which one is due. */
const PAUSE_MS_MAX = 50;

/**
 * The part of the time waited so far that the next pause takes. Without longer pauses, a wait of
 * seconds would ask a server thousands of times.
 */
const PAUSE_SHARE = 1 / 16;

/** Much longer than any condition takes, because a busy machine may be many times slower. */
const WAIT_MS_MAX = 60_000;

/**
 * Resolves once the condition holds.
 *
 * @param waitMsMax Raise it for a condition that takes seconds even on a quiet machine, such as a
 *   retry.
 * @throws If it does not hold in time.
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  waitMsMax: number = WAIT_MS_MAX,
): Promise<void> {
  const startMs = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - startMs;
    if (waitedMs > waitMsMax) throw new Error(`Not in time: ${holds.toString()}`);
    await Bun.sleep(Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, waitedMs * PAUSE_SHARE)));
  }
}
