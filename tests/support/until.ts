/**
 * Waits for what other turns, or a thread, bring about: by time and not by turns, since a busy
 * machine takes long for what a quiet one does at once.
 */
const LOOK_MS = 2;

const WAIT_MS_MAX = 20_000;

/** Resolves once it holds. @throws When it does not hold in time. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`Not in time: ${holds.toString()}`);
    await Bun.sleep(LOOK_MS);
  }
}
