/** Returns how much processor time some work takes, in milliseconds. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { system, user } = process.cpuUsage(before);
  return (system + user) / 1000;
}
