/**
 * What the words of the system for a failed operation mean, and what can be done about them: for
 * who starts the program, and reads "EROFS" for the first time.
 */

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "the user who runs Tidemark may not: change its owner or its rights, or those above it",
  EIO: "the disk failed: the log of the system says more",
  EISDIR: "it is a directory, and should be a file",
  ELOOP: "its symbolic links lead in a circle",
  EMFILE: "this process has too many files open: raise its limit, ulimit -n",
  ENAMETOOLONG: "the name is too long for this file system",
  ENFILE: "the system has too many files open",
  ENOENT: "there is no such file or directory",
  ENOSPC: "the disk is full: make room on it",
  ENOTDIR: "a part of the path is a file, and should be a directory",
  EPERM: "the system forbids it, to this user or to this kind of file",
  EROFS: "the file system can only be read: mount it so that it can be written, or name another",
};

/** Undefined for a word that is too rare to say more than itself. */
export function reasonOfCode(code: string): string | undefined {
  return Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
}

/** As "cannot be read (ENOENT): there is no such file or directory". */
export function unreadableText(code: string): string {
  const reason = reasonOfCode(code);
  return `cannot be read (${code})${reason === undefined ? "" : `: ${reason}`}`;
}
