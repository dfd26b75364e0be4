/**
 * Waits for the effect of later ticks or of a thread. The wait is limited by time rather than by
 * ticks, because a busy machine may need many ticks for work that an idle machine does at once.
 */
const PAUSE_MS_MIN = 2;

/** The maximum pause between two looks, short compared with the time after which one is due. */
const PAUSE_MS_MAX = 50;

/**
 * The part of the time waited so far that the next pause takes. Without longer pauses, a wait of
 * seconds would ask a server thousands of times.
 */
const PAUSE_SHARE = 1 / 16;

/**
 * The maximum time to wait, in milliseconds. It is much longer than any condition takes, because a
 * busy machine may be many times slower.
 */
const WAIT_MS_MAX = 60_000;

/**
 * Resolves once a condition holds.
 *
 * @param waitMsMax Should be raised for a condition that takes seconds even on a quiet machine,
 *   such as a retry.
 * @throws If the condition does not hold in time.
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
