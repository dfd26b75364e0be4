/**
 * Measures the memory use of the process, as reported by the system and the runtime.
 *
 * The runtime does not report how much of its heap is garbage: the size of live objects is known
 * only for a moment after each collection. The minimum over the last minute is close to that size,
 * because the heap of a busy process is collected more than once a minute.
 */
import { heapSize } from "bun:jsc";
import type { Disk } from "./disk.ts";
import { DiskError } from "./errors.ts";
import { arrayBytes, memoryUsage, residentBytes } from "./memory_usage.ts";

/** The memory use of this process. */
export interface ProcessMemory {
  readonly residentBytes: number;
  /**
   * The size of the process's file pages, which contain the program and mapped files, in bytes.
   * The system reclaims them when it needs memory. Undefined if the system does not report this
   * size.
   */
  readonly fileBytes: number | undefined;
  /** The size of this thread's object heap, including unreachable objects and gaps, in bytes. */
  readonly heapBytes: number;
  /**
   * The size of this thread's typed arrays and strings, which are outside the object heap, in
   * bytes. It includes garbage and unused capacity, but not mapped files.
   */
  readonly arrayBytes: number;
  /**
   * An estimate of the size of all live objects, in bytes: the smallest recent size of all
   * objects.
   */
  readonly liveBytes: number;
}

/** The share of the memory limit above which the memory in use is determined exactly. */
const EXACT_SHARE = 1 / 2;

/** The number of heap samples to keep. With one sample every ten seconds, they cover a minute. */
const SAMPLES_MAX = 6;

export class ProcessMemoryGauge {
  readonly #disk: Pick<Disk, "readFile">;
  readonly #samples: number[] = [];

  /**
   * Creates a gauge of this process's memory use.
   * @param disk Reads Linux's `/proc`; other systems report less.
   */
  constructor(disk: Pick<Disk, "readFile">) {
    this.#disk = disk;
  }

  /** Takes a sample of the heap size. The caller should do so every ten seconds. */
  sample(): void {
    this.#samples.push(objectBytes());
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift();
  }

  read(): ProcessMemory {
    const { heapTotal, rss } = memoryUsage();
    // While the collector marks live objects, their size is reported as 0.
    const known = [objectBytes(), ...this.#samples].filter((bytes) => bytes > 0);
    return {
      residentBytes: rss,
      fileBytes: this.#fileBytes(),
      heapBytes: heapTotal,
      arrayBytes: arrayBytes(),
      liveBytes: Math.min(heapTotal, ...known),
    };
  }

  /**
   * Returns the amount of memory that the process uses, excluding file pages if the system reports
   * them.
   *
   * @param bytesMax The memory that the process may use. If less than half of it is in use, the
   *   result includes file pages, because that figure is quicker to read.
   */
  usedBytes(bytesMax: number): number {
    const resident = residentBytes();
    return resident <= EXACT_SHARE * bytesMax ? resident : resident - (this.#fileBytes() ?? 0);
  }

  #fileBytes(): number | undefined {
    try {
      const status = new TextDecoder().decode(this.#disk.readFile("/proc/self/status"));
      const kib = Number(/^RssFile:\s+(\d+) kB/m.exec(status)?.[1]);
      return Number.isNaN(kib) ? undefined : kib * 1024;
    } catch (error) {
      // Other systems than Linux have no such file, and on Linux it cannot be read while no
      // descriptor is free.
      if (error instanceof DiskError) return undefined;
      throw error;
    }
  }
}

/** Returns the size of all objects in bytes, excluding the contents of typed arrays. */
function objectBytes(): number {
  return Math.max(0, heapSize() - memoryUsage().external);
}
