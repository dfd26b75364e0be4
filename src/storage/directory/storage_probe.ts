/** Uses a temporary file to find out which operations a directory supports. */
import type { Disk } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";

/** The prefix of the names of probe files. A crash may leave such files behind. */
export const PROBE = "probe.";

export interface StorageProbe {
  readonly isReadable: boolean;
  readonly isWritable: boolean;
  readonly isListable: boolean;
  readonly isDeletable: boolean;
  /** The first error of the probe; undefined if all operations succeeded. */
  readonly fault: string | undefined;
}

interface ProbeFile {
  readonly directory: string;
  /** An unused name in the directory. It begins with {@linkcode PROBE}. */
  readonly name: string;
}

/**
 * Writes, reads, lists and removes a file, stopping at the first operation that fails. The sync
 * runs off the event loop, so a slow disk does not block it.
 */
export async function probe(disk: Disk, { directory, name }: ProbeFile): Promise<StorageProbe> {
  const path = `${directory}/${name}`;
  const bytes = Buffer.from(name);
  const faults: string[] = [];
  const note = (error: unknown): false => {
    // Catching the error is safe: it becomes part of the result.
    if (!(error instanceof DiskError)) throw error;
    faults.push(error.message);
    return false;
  };
  const can = (step: () => boolean): boolean => {
    try {
      return step();
    } catch (error) {
      return note(error);
    }
  };
  let isWritable = false;
  try {
    const file = disk.open(path, { create: true, exclusive: true });
    try {
      file.write(bytes, 0);
      await file.sync();
    } finally {
      file.close();
    }
    isWritable = true;
  } catch (error) {
    note(error);
  }
  const isReadable = can(() => bytes.equals(disk.readFile(path)));
  const isListable = can(() => disk.list(directory).some((entry) => entry.name === name));
  const isDeletable = can(() => {
    disk.remove(path);
    return true;
  });
  if (!isReadable || !isListable) faults.push(`Cannot read or list ${path} after writing it`);
  return { isReadable, isWritable, isListable, isDeletable, fault: faults[0] };
}
