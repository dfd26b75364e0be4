/**
 * Waits for the effect of later ticks or of a thread. The wait is limited by time rather than by
 * ticks, because a busy machine takes longer for work that an idle one does at once.
 */
const LOOK_MS = 2;

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
  const deadlineMs = performance.now() + waitMsMax;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`Not in time: ${holds.toString()}`);
    await Bun.sleep(LOOK_MS);
  }
}
