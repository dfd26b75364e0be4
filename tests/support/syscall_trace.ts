/**
 * Parses the output of `strace -f -y`, to prove the order in which a process wrote, synced and
 * responded. SIGKILL cannot reveal a missing sync, since the kernel keeps the written data, but a
 * trace can.
 *
 *     812 pwrite64(9</data/wal/0000000001.wal>, "…", 96, 4096) = 96
 *     815 fdatasync(9</data/wal/0000000001.wal> <unfinished ...>
 *     815 <... fdatasync resumed>) = 0
 *     812 openat(AT_FDCWD</>, "/data/wal/0000000002.wal", O_RDWR|O_DSYNC) = 9</data/wal/0000000002.wal>
 *     812 sendto(14<socket:[4711]>, "HTTP/1.1 200 OK…", 310, …) = 310
 */

export interface SystemCall {
  readonly name: string;
  /** The first argument of a system call or, for a call that opens a file, its result. */
  readonly descriptor: number;
  /** The path that the descriptor refers to. */
  readonly path: string;
  /** The remaining arguments of the call, as strace prints them. */
  readonly text: string;
  /**
   * The line of the trace where the call began; `endLine` is the line where the call returned. The
   * two are the same unless another thread ran in between.
   */
  readonly startLine: number;
  readonly endLine: number;
  readonly isSuccess: boolean;
}

/** Parses a whole trace. Calls that never returned are left out. */
export function parseTrace(trace: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const unfinished = new Map<string, { text: string; startLine: number }>();
  for (const [line, text] of trace.split("\n").entries()) {
    const [, thread = "", rest = ""] = /^(?:\[pid )?(\d+)\]?\s+(.*)$/.exec(text) ?? [];
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1];
    if (rest.endsWith("<unfinished ...>")) {
      unfinished.set(thread, {
        text: rest.replace(/\s*<unfinished \.\.\.>$/, ""),
        startLine: line,
      });
      continue;
    }
    const begun = resumed === undefined ? undefined : unfinished.get(thread);
    if (resumed !== undefined && begun === undefined) continue;
    unfinished.delete(thread);
    const whole = begun === undefined ? rest : begun.text + resumed;
    const call = callFrom(whole, begun?.startLine ?? line, line);
    if (call !== undefined) calls.push(call);
  }
  return calls;
}

function callFrom(text: string, startLine: number, endLine: number): SystemCall | undefined {
  const lines = { startLine, endLine };
  const [, flags, opened, openedPath] = /^openat\((.*)\) = (\d+)<([^>]*)>$/s.exec(text) ?? [];
  if (flags !== undefined && openedPath !== undefined) {
    const descriptor = Number(opened);
    return { name: "openat", descriptor, path: openedPath, text: flags, ...lines, isSuccess: true };
  }
  const [, name, number, path, rest] = /^(\w+)\((\d+)<([^>]*)>(.*)$/s.exec(text) ?? [];
  if (name === undefined || path === undefined || rest === undefined) return undefined;
  const result = /= (-?\d+)[^=]*$/.exec(rest)?.[1];
  if (result === undefined) return undefined;
  const isSuccess = Number(result) >= 0;
  return { name, descriptor: Number(number), path, text: rest, ...lines, isSuccess };
}

/** Describes a commit whose response was sent before the commit was certain to be on disk. */
export type OrderFault = string;

/**
 * Checks that each committed string is on disk before a response that repeats it is sent. The
 * string must be written to the log. After that, either a sync of the same file must begin and
 * succeed, or the write itself must succeed through a descriptor that makes writes durable. Only
 * then may the response be sent.
 */
export function orderFaults(
  calls: readonly SystemCall[],
  markers: readonly string[],
  isLog: (path: string) => boolean,
): OrderFault[] {
  const writes = calls.filter(({ name, path }) => /^p?write/.test(name) && isLog(path));
  const syncs = calls.filter(({ name, isSuccess }) => /^f(?:data)?sync$/.test(name) && isSuccess);
  const opens = calls.filter(({ name }) => name === "openat");
  const isThrough = ({ descriptor, isSuccess, startLine }: SystemCall): boolean =>
    isSuccess &&
    (opens
      .findLast((open) => open.descriptor === descriptor && open.endLine < startLine)
      ?.text.includes("O_DSYNC") ??
      false);
  const sends = calls.filter(
    ({ name, path }) => /^(?:send|write)/.test(name) && path.startsWith("socket:"),
  );
  return markers.flatMap((marker) => {
    const answer = sends.find(({ text }) => text.includes(marker));
    if (answer === undefined) return [`${marker} was not answered`];
    const write = writes.find(({ text }) => text.includes(marker));
    if (write === undefined) return [`${marker} was never written to the log`];
    const isSynced =
      (isThrough(write) && write.endLine < answer.startLine) ||
      syncs.some(
        ({ path, startLine, endLine }) =>
          path === write.path && startLine > write.endLine && endLine < answer.startLine,
      );
    return isSynced ? [] : [`${marker} was answered on line ${answer.startLine}, before its sync`];
  });
}
