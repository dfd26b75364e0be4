/**
 * Preloaded into a server process (`bun --preload`), so that it lives some hours later than the
 * machine: what takes an hour in production can then be waited for in a test.
 */
const now = Date.now.bind(Date);
const shiftMs = Number(process.env["SHIFT_CLOCK_MS"] ?? "0");

Date.now = () => now() + shiftMs;
