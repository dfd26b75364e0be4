/**
 * Explains the system's error codes, and how to solve each problem, to an operator who sees a code
 * such as "EROFS" for the first time.
 */

const REASONS: Readonly<Record<string, string>> = {
  EACCES:
    "the user that runs Tidemark has no access; change the owner or the permissions of the " +
    "file, or of a directory that contains it",
  EIO: "the disk failed; the system's log has the details",
  EISDIR: "the path is a directory, but must be a file",
  ELOOP: "the symbolic links in the path form a loop",
  EMFILE: "the server process has too many open files; raise its limit (ulimit -n)",
  ENAMETOOLONG: "the name is too long for this file system",
  ENFILE: "the system has too many open files",
  ENOENT: "there is no such file or directory",
  ENOSPC: "the disk is full; free up some space",
  ENOTDIR: "a part of the path is a file, but must be a directory",
  EPERM: "the system does not allow the operation for this user or this kind of file",
  EROFS: "the file system is read-only; mount it as writable, or use a different one",
};

/** Returns the explanation of a system error code; undefined for a rare code that has none. */
export function reasonOfCode(code: string): string | undefined {
  return Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
}

/** Returns text like "cannot be read (ENOENT): there is no such file or directory". */
export function unreadableText(code: string): string {
  const reason = reasonOfCode(code);
  return `cannot be read (${code})${reason === undefined ? "" : `: ${reason}`}`;
}
