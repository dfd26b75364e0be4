/**
 * A section of a mapped segment file, checked page by page as it is touched (see `format.ts`).
 */

import { PAGE_BYTES, pageSeed, type SectionName } from "./format.ts";
import type { SegmentFile } from "./segment_file.ts";

export interface SectionPlace {
  readonly segmentId: number;
  readonly section: SectionName;
  readonly offset: number;
  readonly byteCount: number;
  /** Where in the file the hashes of its pages are. */
  readonly hashesOffset: number;
}

export class Section {
  readonly place: SectionPlace;
  readonly #file: SegmentFile;
  /** One byte a page: 1 once its checksum held. */
  readonly #isChecked: Uint8Array;

  constructor(file: SegmentFile, place: SectionPlace) {
    this.#file = file;
    this.place = place;
    this.#isChecked = new Uint8Array(pageCount(place.byteCount));
  }

  /**
   * Checks the page of a byte of the section.
   *
   * @throws {CorruptionError} If its checksum does not match.
   */
  touch(byteIndex: number): void {
    const pageIndex = Math.floor(byteIndex / PAGE_BYTES);
    if (this.#isChecked[pageIndex] === 1) return;
    const { segmentId, section, offset, byteCount, hashesOffset } = this.place;
    const start = pageIndex * PAGE_BYTES;
    const view = new DataView(this.#file.bytes.buffer, hashesOffset + pageIndex * 8, 8);
    this.#file.check({
      offset: offset + start,
      byteCount: Math.min(PAGE_BYTES, byteCount - start),
      seed: pageSeed({ segmentId, section, pageIndex }),
      hash: { low: view.getUint32(0, true), high: view.getUint32(4, true) },
      what: `the checksum of page ${pageIndex} of the ${section}`,
    });
    this.#isChecked[pageIndex] = 1;
  }

  /** Checks every page, one in each step, which yields where the section begins. */
  *touchSteps(): Generator<number> {
    for (let start = 0; start < this.place.byteCount; start += PAGE_BYTES) {
      this.touch(start);
      yield this.place.offset;
    }
  }
}

export function pageCount(byteCount: number): number {
  return Math.ceil(byteCount / PAGE_BYTES);
}
