/**
 * Finds the function at an address of compiled code. It reads the file that the runtime writes
 * whenever it compiles a function, in the jitdump format of Linux's perf.
 *
 *     file     40 bytes, then records          record, kind 0: code   OFFSET SIZE
 *     record   OFFSET SIZE                      pid, thread              16     8
 *                 0     4   kind                address of the unit      24     8
 *                 4     4   bytes in all        address of the code      32     8
 *                 8     8   nanoseconds         bytes of the code        40     8
 *                                               number                   48     8
 *                                               name, ends with 0        56
 *
 * Different code may later occupy the same address, so a name is valid only for a moment.
 */

const FILE_HEADER_BYTES = 40;
const RECORD_HEADER_BYTES = 16;
const NAME_OFFSET = 56;

/**
 * The size of the pages into which the lookup divides the address space: all functions that
 * overlap a page are searched together.
 */
const PAGE_BYTES = 4096;

interface CompiledCode {
  readonly start: number;
  readonly end: number;
  /** When the function was compiled, in nanoseconds since the machine booted. */
  readonly compiledNs: number;
  readonly name: string;
}

export class JitDump {
  readonly #byPage = new Map<number, CompiledCode[]>();

  constructor(bytes: Buffer) {
    let at = FILE_HEADER_BYTES;
    while (at + RECORD_HEADER_BYTES <= bytes.length) {
      const kind = bytes.readUInt32LE(at);
      const size = bytes.readUInt32LE(at + 4);
      // The last record is incomplete if the runtime was still writing it.
      if (size === 0 || at + size > bytes.length) break;
      if (kind === 0) this.#add(bytes.subarray(at, at + size));
      at += size;
    }
  }

  /**
   * Returns the function at an address at a given time, in the form "FTL: name#a1B2c3": its tier,
   * its name, and a hash that distinguishes functions with the same name. Returns undefined if the
   * address contained no compiled function.
   */
  nameAt(address: number, atNs: number): string | undefined {
    let newest: CompiledCode | undefined;
    for (const code of this.#byPage.get(Math.floor(address / PAGE_BYTES)) ?? []) {
      if (address < code.start || address >= code.end || code.compiledNs > atNs) continue;
      if (newest === undefined || code.compiledNs > newest.compiledNs) newest = code;
    }
    return newest?.name;
  }

  #add(record: Buffer): void {
    const start = Number(record.readBigUInt64LE(32));
    const end = start + Number(record.readBigUInt64LE(40));
    const nameEnd = record.indexOf(0, NAME_OFFSET);
    const name = record.toString("utf8", NAME_OFFSET, nameEnd).replace(/^JSC-/, "");
    const code = { start, end, compiledNs: Number(record.readBigUInt64LE(8)), name };
    const lastPage = Math.floor((end - 1) / PAGE_BYTES);
    for (let page = Math.floor(start / PAGE_BYTES); page <= lastPage; page += 1) {
      const known = this.#byPage.get(page);
      if (known === undefined) this.#byPage.set(page, [code]);
      else known.push(code);
    }
  }
}
